//! Names and beginnings of ids stand for ids, wherever one is asked for.

use serde_json::json;

use super::instances::{Town, answer};
use crate::http::project;
use crate::support::realm::EXAMPLE;

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_named_by_its_slug_or_as_much_of_its_id_as_is_enough() {
    let town = Town::new().await;
    let (mut operator, mut everybody) = (town.shell("operator"), town.shell("admin"));
    town.version().await;
    let id = EXAMPLE.to_string();
    for name in ["example", &id[..8], &id] {
        let apps = operator.ask(&["apps", "--project", name, "-o", "name"]).await;
        assert_eq!((apps.code, apps.stdout.as_str()), (Some(0), "hello\n"), "{name}: {apps:?}");
    }
    operator.set("GPUAAS_PROJECT", "example".to_owned());
    assert_eq!(operator.ask(&["ps"]).await.code, Some(0));
    let nobody = operator.ask(&["ps", "--project", "far-away"]).await;
    assert_eq!(nobody.code, Some(4), "another's is not told of: {nobody:?}");
    assert!(nobody.stderr.contains("gpuaas whoami"), "{nobody:?}");
    // Whoever runs the platform may mean any, and says which where several begin alike.
    assert_eq!(everybody.ask(&["ps", "--project", "far-away"]).await.code, Some(0));
    let several = everybody.ask(&["ps", "--project", "00000000-0000"]).await;
    assert_eq!(several.code, Some(1), "{several:?}");
    assert!(several.stderr.contains("(example)") && several.stderr.contains("(next-door)"), "{several:?}");
    everybody.set("GPUAAS_PROJECT", "nowhere".to_owned());
    assert_eq!(everybody.ask(&["whoami"]).await.code, Some(0), "who one is, is told wherever one is");
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_and_a_credential_are_named_as_people_do() {
    let town = Town::new().await;
    let operator = town.shell("project-admin");
    town.version().await;
    let http = town.platform.http.acting("project-admin");
    let listed = http.get(&project("/app-artifacts")).await.with(200);
    let artifact = &listed["items"][0];
    let (id, digest) = (artifact["id"].as_str().unwrap(), artifact["digest"].as_str().unwrap());
    for name in [id, &id[..30], digest, &digest[..19]] {
        let plan = answer(&operator.ask(&["plan", "hello", "--artifact", name, "-o", "json"]).await);
        assert_eq!(plan["effective"]["artifacts"][0]["artifact_id"], json!(id), "{name}");
    }
    let unknown = operator.ask(&["plan", "hello", "--artifact", "sha256:ffff"]).await;
    assert_eq!(unknown.code, Some(4), "{unknown:?}");

    let made = json!({ "name": "model-hub", "value": "hf_x" });
    let made = http.post(&project("/access-credentials"), made).await.with(201);
    let id = made["id"].as_str().unwrap();
    for name in ["model-hub", id, &id[..30]] {
        // The version knows no such class, and says so: by then the credential was found.
        let said =
            operator.ask(&["plan", "hello", "--credential", &format!("hf={name}"), "-o", "json"]).await;
        assert!(said.stderr.contains("/credentials/hf"), "{name}: {said:?}");
    }
    let unknown = operator.ask(&["plan", "hello", "--credential", "hf=nobody"]).await;
    assert_eq!(unknown.code, Some(4), "{unknown:?}");
    assert!(unknown.stderr.contains("no credential of the project is called nobody"), "{unknown:?}");
    town.end().await;
}
