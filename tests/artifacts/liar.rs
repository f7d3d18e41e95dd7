//! A registry that lies: whatever it gives under a digest is hashed and bounded here.

use serde_json::{Value, json};

use crate::catalog;
use crate::http::{Answer, Http, project};
use crate::support::image::digest;
use crate::support::registry;
use crate::support::story::Story;

async fn register(http: &Http, named: &domain::Digest) -> Answer {
    let wanted = json!({ "app_slug": "hello", "app_version": "1.0.0", "digest": named });
    http.acting("publisher").post(&project("/app-artifacts"), wanted).await
}

fn message(refused: &Value) -> &str {
    refused["details"]["errors"][0]["message"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn other_bytes_than_the_digest_says_are_refused_and_so_are_too_many() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    catalog::register(&http, "hello", "1.0.0").await;
    let intent = json!({ "app_slug": "hello", "app_version": "1.0.0" });
    http.acting("publisher").post(&project("/app-artifacts/publish-intents"), intent).await.with(201);

    let good = registry::shelve("a good image");
    let truncated = registry::shelved(&good);
    let truncated = &truncated[..truncated.len() - 1];
    let named = digest(b"a truncated image");
    registry::shelve_as(&named, truncated);
    let refused = register(&http, &named).await.with(422);
    assert_eq!(refused["code"], "digest_mismatch");
    assert_eq!(refused["details"], json!({ "asked": named, "found": digest(truncated) }));

    let large = format!(r#"{{"config":{{}},"layers":[],"padding":"{}"}}"#, "x".repeat(4 << 20)).into_bytes();
    registry::shelve_as(&digest(&large), &large);
    let refused = register(&http, &digest(&large)).await.with(400);
    assert_eq!(
        (&refused["code"], &refused["details"]["errors"][0]["pointer"]),
        (&json!("validation_error"), &json!("/digest"))
    );
    assert!(message(&refused).contains("more than 4194304 bytes"), "{}", message(&refused));
    register(&http, &good).await.with(201);
    story.end().await;
}
