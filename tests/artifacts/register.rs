//! What is registered is what the registry has, by digest, where an intent said.

use axum::http::Method;
use serde_json::{Value, json};

use super::yard::{OURS, Yard};
use crate::catalog;
use crate::http::project;
use crate::support::image::{Image, MANIFEST, digest};
use crate::support::realm::EXAMPLE;

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_in_the_registry_under_the_intents_repository_is_registered() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let refused = yard.register(&image, json!({})).await.with(400);
    assert_eq!(refused["details"]["errors"][0]["pointer"], "/artifact_name", "without an intent");
    let repository = yard.push(&image).await;
    let absent = digest(b"something else");
    for (why, more, status, code) in [
        ("a tag is no digest", json!({ "digest": "latest" }), 400, "validation_error"),
        (
            "nor is an upper-case one",
            json!({ "digest": image.digest.as_str().to_uppercase() }),
            400,
            "validation_error",
        ),
        ("nothing has this digest", json!({ "digest": absent }), 400, "validation_error"),
        (
            "another repository",
            json!({ "repository": "gpuaas/apps/next-door/hello" }),
            400,
            "validation_error",
        ),
        (
            "another media type",
            json!({ "media_type": "application/vnd.docker.distribution.manifest.v2+json" }),
            400,
            "validation_error",
        ),
        ("another size", json!({ "size_bytes": 1 }), 400, "validation_error"),
        ("another source", json!({ "source_type": "artifact_store" }), 400, "validation_error"),
        ("a tag that is not there", json!({ "tag": "v2" }), 400, "validation_error"),
    ] {
        let answer = yard.register(&image, more).await.with(status);
        assert_eq!(answer["code"], code, "{why}: {answer:#}");
    }
    // The tag is moved between push and registration.
    let other = Image::saying("something else");
    for blob in other.blobs() {
        repository.push_bytes(&blob).await.unwrap();
    }
    repository.push_manifest("1.0.0", MANIFEST, &other.manifest).await.unwrap();
    let moved = yard.register(&image, json!({ "tag": "1.0.0" })).await.with(422);
    assert_eq!(
        (&moved["code"], &moved["details"]["tag_digest"]),
        (&json!("digest_mismatch"), &json!(other.digest))
    );

    let more = json!({ "media_type": MANIFEST, "size_bytes": image.manifest.len(), "repository": OURS });
    let artifact = yard.register(&image, more).await.with(201);
    let again = yard.register(&image, json!({})).await.with(409);
    assert_eq!(
        (&again["code"], &again["details"]["artifact_id"]),
        (&json!("already_exists"), &artifact["id"])
    );
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_may_expect_a_digest_and_policy_may_name_sources() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    yard.push(&image).await;
    yard.intent(json!({ "expected_digest": digest(b"another") })).await;
    assert_eq!(yard.register(&image, json!({})).await.with(422)["code"], "digest_mismatch");
    yard.intent(json!({ "expected_digest": image.digest })).await;
    yard.policy("artifact.source_allowlist", json!(["gpuaas/apps/next-door"])).await;
    assert_eq!(yard.register(&image, json!({})).await.with(403)["code"], "policy_denied");
    yard.policy("artifact.source_allowlist", json!(["gpuaas/apps/example"])).await;
    yard.register(&image, json!({})).await.with(201);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn monstrous_and_damaged_manifests_are_refused() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let repository = yard.push(&image).await;
    let manifest: Value = serde_json::from_slice(&image.manifest).unwrap();
    let mut many = manifest.clone();
    many["layers"] = json!(vec![manifest["layers"][0].clone(); 10_000]);
    let many = many.to_string().into_bytes();
    repository.push_manifest("many", MANIFEST, &many).await.unwrap();
    let refused = yard.register(&image, json!({ "digest": digest(&many) })).await.with(400);
    let said = refused["details"]["errors"][0]["message"].as_str().unwrap();
    assert!(said.contains("10000 layers"), "{said}");

    let mut large = manifest;
    large["annotations"] = json!({ "padding": "x".repeat(4 << 20) });
    let large = large.to_string().into_bytes();
    assert!(
        repository.push_manifest("large", MANIFEST, &large).await.is_err(),
        "the registry refuses it already"
    );

    let truncated = &image.manifest[..image.manifest.len() - 1];
    std::fs::write(yard.registry.blob_file(&image.digest), truncated).unwrap();
    // This registry notices itself and fails; one that does not is told of in `liar.rs`.
    assert_eq!(yard.register(&image, json!({})).await.with(503)["code"], "service_unavailable");
    assert_eq!(yard.events().await.len(), 0, "nothing was registered");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_is_away_is_said_to_be() {
    let mut yard = Yard::new().await;
    let image = Image::saying("hello");
    yard.push(&image).await;
    yard.registry.stop();
    let answer = yard.register(&image, json!({})).await;
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.with(503)["code"], "service_unavailable");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_names_a_digest_takes_no_other() {
    let yard = Yard::new().await;
    let (image, other) = (Image::saying("hello"), Image::saying("something else"));
    // Registered before anybody said what is expected; the version never takes it.
    yard.push(&other).await;
    yard.intent(json!({ "app_version": "2.0.0" })).await;
    let stray = yard.register(&other, json!({ "app_version": "2.0.0" })).await.with(201);
    let mut manifest = catalog::manifest("hello", "2.0.0");
    manifest["version"]["artifacts"] = json!([{ "name": "runtime", "expected_digest": image.digest }]);
    let path = format!("/api/v1/admin/apps/manifests?owner_project_id={EXAMPLE}");
    yard.http.post(&path, manifest).await.with(201);
    let gates = yard.http.get("/api/v1/apps/catalog/hello/versions/2.0.0/gates").await.with(200);
    assert!(gates.to_string().contains("Nothing is registered for runtime"), "{gates:#} {stray:#}");

    let refused = yard.register(&Image::saying("a third"), json!({ "app_version": "2.0.0" })).await.with(422);
    assert_eq!(
        (&refused["code"], &refused["details"]["expected"]),
        (&json!("digest_mismatch"), &json!(image.digest))
    );
    let intents = project("/app-artifacts/publish-intents");
    let wanted = json!({ "app_slug": "hello", "app_version": "2.0.0", "expected_digest": other.digest });
    let refused = yard.http.acting("publisher").post(&intents, wanted).await.with(400);
    assert_eq!(refused["details"]["errors"][0]["pointer"], "/expected_digest");
    let intent = yard.intent(json!({ "app_version": "2.0.0" })).await;
    assert_eq!(intent["expected_digest"], json!(image.digest), "the intent says what the manifest takes");
    yard.push(&image).await;
    let artifact = yard.register(&image, json!({ "app_version": "2.0.0" })).await.with(201);
    catalog::acts(&yard.http, "hello", "2.0.0", "stage", json!({})).await;
    let frozen: String = sqlx::query_scalar("select artifact_id::text from app_version_artifacts")
        .fetch_one(&yard.story.pool)
        .await
        .unwrap();
    assert_eq!(json!(frozen), artifact["id"]);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_again_gets_the_first_answer_though_the_registry_is_away() {
    let mut yard = Yard::new().await;
    let image = Image::saying("hello");
    yard.push(&image).await;
    let publisher = yard.http.acting("publisher");
    let wanted = json!({ "app_slug": "hello", "app_version": "1.0.0", "digest": image.digest });
    let ask = async |path: &str, body: &Value| {
        let keyed = [("x-idempotency-key", "once")];
        publisher.send(Method::POST, path, &keyed, Some(body.clone())).await
    };
    let register = project("/app-artifacts");
    let artifact = ask(&register, &wanted).await.with(201);
    let verify = project(&format!("/app-artifacts/{}/verify", artifact["id"].as_str().unwrap()));
    let verdict = ask(&verify, &json!({})).await.with(200);
    yard.registry.stop();
    let again = ask(&register, &wanted).await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(again.with(201), artifact);
    assert_eq!(ask(&verify, &json!({})).await.with(200), verdict);
    let other =
        ask(&register, &json!({ "app_slug": "hello", "app_version": "9.9.9", "digest": image.digest })).await;
    assert_eq!(other.with(422)["code"], "idempotency_key_reused");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_retired_and_deleted_may_be_published_again() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let first = yard.publish(&image).await;
    yard.retired(&first).await;
    yard.push(&image).await;
    let second = yard.register(&image, json!({})).await.with(201);
    assert_ne!(second["id"], first["id"]);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_within_an_index_is_refused_before_it_is_pushed() {
    let yard = Yard::new().await;
    let (one, two) = (Image::saying("amd64"), Image::saying("arm64"));
    one.beside(&two);
    let layout = one.within_an_index().display().to_string();
    let shell = crate::cli::Shell::at(yard.address, yard.http.acting("publisher").token());
    let said = shell.ask(&["publish", "hello", "1.0.0", "--image", &layout]).await;
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("an index within an index"), "{said:?}");
    assert_eq!(yard.rows().await, 0, "nothing was asked for");
    yard.end().await;
}
