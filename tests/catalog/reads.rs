//! What the catalog shows, and to whom.

use std::fs;
use std::path::Path;

use domain::explanation::Explanation;
use domain::manifest;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{acts, artifact, catalog, publish, register};
use crate::http::Http;
use crate::support::control_plane::Platform;
use crate::support::realm::{EXAMPLE, FAR_AWAY, NEXT_DOOR};

async fn slugs(http: &Http, query: &str) -> Vec<String> {
    let page = http.get(&catalog(query)).await.with(200);
    let items = page["items"].as_array().unwrap();
    items.iter().map(|app| app["slug"].as_str().unwrap().to_owned()).collect()
}

async fn entitle(platform: &Platform, project: Uuid, slug: &str, enabled: bool) {
    let path = format!("/api/v1/projects/{project}/apps/entitlements/{slug}");
    platform.put(&path, json!({ "enabled": enabled })).await.with(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_raw_catalog_shows_every_app_page_by_page() {
    let platform = Platform::new().await;
    for slug in ["app-a", "app-b", "app-c"] {
        register(&platform, slug, "1.0.0").await;
    }
    register(&platform, "app-a", "1.10.0").await;
    register(&platform, "app-a", "1.9.0").await;
    let viewer = platform.acting("viewer");
    let first = viewer.get(&catalog("?limit=2")).await.with(200);
    assert_eq!(first["items"][0]["newest_version"], "1.10.0", "numbers are compared as numbers");
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(slugs(&viewer, &format!("?limit=2&cursor={cursor}")).await, ["app-c"]);
    let versions = viewer.get(&catalog("/app-a/versions")).await.with(200);
    let numbers: Vec<&Value> = versions["items"].as_array().unwrap().iter().map(|v| &v["version"]).collect();
    assert_eq!(numbers, ["1.0.0", "1.10.0", "1.9.0"], "in the order of registration");
    assert_eq!(viewer.get(&catalog("/app-z")).await.with(404)["code"], "app_not_found");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_sees_what_it_may_deploy_and_nothing_else() {
    let platform = Platform::new().await;
    publish(&platform, "open", "1.0.0").await;
    publish(&platform, "closed", "1.0.0").await;
    register(&platform, "rolling", "1.0.0").await;
    artifact(&platform, "rolling", "1.0.0", "verified", &[]).await;
    acts(&platform, "rolling", "1.0.0", "stage", json!({})).await;
    acts(&platform, "rolling", "1.0.0", "canary", json!({ "project_ids": [NEXT_DOOR] })).await;
    for project in [EXAMPLE, NEXT_DOOR] {
        for (slug, enabled) in [("open", true), ("closed", false), ("rolling", true)] {
            entitle(&platform, project, slug, enabled).await;
        }
    }
    let query = |project: Uuid| format!("?project_id={project}&entitled=true");
    assert_eq!(slugs(&platform.acting("viewer"), &query(EXAMPLE)).await, ["open"]);
    assert_eq!(slugs(&platform.acting("neighbour"), &query(NEXT_DOOR)).await, ["open", "rolling"]);
    let versions = catalog(&format!("/rolling/versions{}", query(NEXT_DOOR)));
    let offered = platform.acting("neighbour").get(&versions).await.with(200);
    assert_eq!(offered["items"][0]["version"], "1.0.0");
    let none = catalog(&format!("/rolling/versions{}", query(EXAMPLE)));
    assert_eq!(platform.acting("viewer").get(&none).await.with(200)["items"], json!([]));

    let app = platform.acting("viewer").get(&catalog(&format!("/open?project_id={EXAMPLE}"))).await.with(200);
    assert_eq!(app["offered_version"], "1.0.0");
    let hidden = platform.acting("viewer").get(&catalog(&query(FAR_AWAY))).await.with(404);
    assert_eq!(hidden["code"], "project_not_found");
    let whose = platform.acting("viewer").get(&catalog("?entitled=true")).await.with(400);
    assert_eq!(whose["details"]["errors"][0]["pointer"], "/project_id");
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_entitled_apps_are_full_although_canaries_are_passed_over() {
    let platform = Platform::new().await;
    let mut expected = Vec::new();
    for number in 0..12 {
        let slug = format!("app-{number:02}");
        if number % 2 == 0 {
            publish(&platform, &slug, "1.0.0").await;
            expected.push(slug.clone());
        } else {
            register(&platform, &slug, "1.0.0").await;
            artifact(&platform, &slug, "1.0.0", "verified", &[]).await;
            acts(&platform, &slug, "1.0.0", "stage", json!({})).await;
            acts(&platform, &slug, "1.0.0", "canary", json!({ "project_ids": [FAR_AWAY] })).await;
        }
        entitle(&platform, EXAMPLE, &slug, true).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = catalog(&format!("?project_id={EXAMPLE}&entitled=true&limit=2{cursor}"));
        let page = platform.get(&path).await.with(200);
        let items = page["items"].as_array().unwrap();
        assert!(!items.is_empty(), "no page is empty");
        seen.extend(items.iter().map(|app| app["slug"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, expected);
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_explains_itself() {
    let platform = Platform::new().await;
    register(&platform, "notes", "1.0.0").await;
    let told = platform.acting("viewer").get(&catalog("/notes/versions/1.0.0/explain")).await.with(200);
    assert_eq!(told["ports"], json!([{ "name": "http", "container": 8080, "expose": "private" }]));
    assert_eq!(told["artifacts"][0]["name"], "runtime");
    assert_eq!(told["price"]["metering"], json!(null));
    platform.end().await;
}

#[test]
fn the_reference_apps_explain_themselves() {
    for app in ["hello", "jupyterlab", "slurm-reference", "vllm-openai"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("apps").join(app).join("manifest.yaml");
        let accepted = manifest::read(&fs::read_to_string(file).unwrap(), manifest::Format::Yaml).unwrap();
        insta::assert_json_snapshot!(format!("explain_{app}"), Explanation::of(&accepted.manifest));
    }
}
