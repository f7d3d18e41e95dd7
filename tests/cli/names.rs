//! Names and beginnings of ids stand for ids, wherever one is asked for.

use serde_json::json;

use super::instances::{Town, answer};
use crate::http::project;
use crate::support::realm::{DEMO, EXAMPLE};

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

#[tokio::test(flavor = "multi_thread")]
async fn what_may_mean_several_runs_means_no_instance() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    let here = answer(&operator.ask(&["up", "hello", "-o", "json"]).await);
    answer(&operator.ask(&["up", "hello", "--name", "other", "-o", "json"]).await);
    answer(&operator.ask(&["down", "other", "-o", "json"]).await);
    // Three runs begin like the one instance that is there: all of them are of these days.
    let beginning = &here["id"].as_str().unwrap()[..4];
    for verb in ["retry", "wait"] {
        let said = operator.ask(&[verb, beginning]).await;
        assert_eq!(said.code, Some(1), "{verb}: {said:?}");
        assert!(said.stderr.contains("may be any of these"), "{verb}: {said:?}");
        assert!(said.stderr.contains(here["workflow"]["id"].as_str().unwrap()), "{verb}: {said:?}");
    }
    for words in [here["id"].as_str().unwrap(), here["workflow"]["id"].as_str().unwrap(), "hello"] {
        let said = operator.ask(&["wait", words]).await;
        assert_eq!(said.code, Some(0), "{words}: {said:?}");
    }
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_found_and_free_ones_known_however_many_instances_have_gone() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    // More than lists are read to their end, and all older than what comes.
    sqlx::query(
        "insert into app_instances (id, org_id, project_id, app_slug, version, display_name, status, operating_mode,
             control_plane_scope, runtime_backend, placement_intent, config, resources, correlation_id, created_by)
         select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, $2, 'hello', '1.0.0', 'gone-' || n,
             'decommissioned', 'tenant_dedicated', 'project', 'launchable_oci', '{}', '{}', '{}', 'c', gen_random_uuid()
         from generate_series(1, 5001) n",
    )
    .bind(DEMO)
    .bind(EXAMPLE)
    .execute(&town.platform.story.pool)
    .await
    .unwrap();
    answer(&operator.ask(&["up", "hello", "-o", "json"]).await);
    let second = answer(&operator.ask(&["up", "hello", "-o", "json"]).await);
    assert_eq!(second["display_name"], "hello-2");
    let waited = operator.ask(&["wait", "hello"]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert!(!waited.stderr.contains("there are more than"), "{waited:?}");
    // One that has gone is meant where no other can be.
    let gone = operator.ask(&["events", "gone-5001"]).await;
    assert_eq!(gone.code, Some(0), "{gone:?}");
    town.end().await;
}
