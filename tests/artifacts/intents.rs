//! Intents: who gets one, what it is good for, and that its credential is fetched once.

use std::time::Duration;

use axum::http::Method;
use futures::future::join_all;
use serde_json::{Value, json};

use super::yard::{OURS, Yard, unwrapped};
use crate::catalog::acts;
use crate::http::project;
use crate::support::image::{self, Image};

const INTENTS: &str = "/app-artifacts/publish-intents";
const UNWRAP: &str = "/v1/sys/wrapping/unwrap";

fn wanted() -> Value {
    json!({ "app_slug": "hello", "app_version": "1.0.0", "artifact_name": "runtime", "channel": "dev" })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_leads_to_a_push_and_the_push_to_an_artifact() {
    let yard = Yard::new().await;
    let intent = yard.http.acting("publisher").post(&project(INTENTS), wanted()).await.with(201);
    assert_eq!(intent["repository"], "gpuaas/apps/example/hello");
    assert_eq!((&intent["tag"], &intent["registry"]), (&json!("dev-latest"), &json!(yard.registry.host)));
    assert_eq!(intent["credential"]["mode"], "wrapped");
    assert_eq!(
        (&intent["signature_required"], &intent["provenance_required"]),
        (&json!(false), &json!(false))
    );
    let credential = yard.unwrap(&intent).await;
    let image = Image::saying("hello");
    let name = yard.name(OURS, ":dev-latest");
    let said = image::push(&image, &name, credential.pair()).await;
    assert!(said.done, "{}", said.words);
    let artifact = yard.register(&image, json!({ "tag": "dev-latest" })).await.with(201);
    assert_eq!(
        (&artifact["digest"], &artifact["digest_algorithm"]),
        (&json!(image.digest), &json!("sha256"))
    );
    assert_eq!(
        (&artifact["lifecycle_state"], &artifact["trust_state"]),
        (&json!("published"), &json!("unverified"))
    );
    assert_eq!(artifact["size_bytes"], image.manifest.len());
    assert_eq!(artifact["media_type"], image::MANIFEST);
    let path = project(&format!("/app-artifacts/{}", artifact["id"].as_str().unwrap()));
    assert_eq!(yard.http.acting("viewer").get(&path).await.with(200), artifact);
    let listed = yard.http.acting("viewer").get(&project("/app-artifacts?app_slug=hello")).await.with(200);
    assert_eq!(listed["items"], json!([artifact]));
    assert_eq!(yard.events().await, ["apps.artifact.published"]);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demand_that_cannot_be_read_is_one_that_holds() {
    let yard = Yard::new().await;
    sqlx::query(
        "insert into policies (layer, scope_id, key, value, updated_by)
         select 'global', '00000000-0000-0000-0000-000000000000', key, '\"yes\"', gen_random_uuid()
         from unnest(array['artifact.signature_required', 'artifact.provenance_required']) key",
    )
    .execute(&yard.story.pool)
    .await
    .unwrap();
    let intent = yard.http.acting("publisher").post(&project(INTENTS), wanted()).await.with(201);
    let required = (&intent["signature_required"], &intent["provenance_required"]);
    assert_eq!(required, (&json!(true), &json!(true)), "{intent:#}");
    let told = yard.http.acting("viewer").get("/api/v1/apps/registry").await.with(200);
    assert_eq!(told["signature_required"], true);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_of_an_app_gets_intents_for_it() {
    let yard = Yard::new().await;
    let next_door = format!("/api/v1/projects/{}{INTENTS}", crate::support::realm::NEXT_DOOR);
    let refused = yard.http.acting("neighbour").post(&next_door, wanted()).await.with(403);
    assert_eq!(refused["code"], "ownership_required", "although nobody has published yet");
    yard.http.acting("publisher").post(&project(INTENTS), wanted()).await.with(201);
    let mut unheard_of = wanted();
    unheard_of["app_slug"] = json!("unheard-of");
    let refused = yard.http.acting("publisher").post(&project(INTENTS), unheard_of).await.with(404);
    assert_eq!(refused["code"], "app_not_found");
    for (field, value) in [
        ("source_type", json!("artifact_store")),
        ("source_type", json!("s3")),
        ("expected_digest", json!("latest")),
    ] {
        let mut wrong = wanted();
        wrong[field] = value;
        assert_eq!(yard.http.post(&project(INTENTS), wrong).await.with(400)["code"], "validation_error");
    }
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_who_unwrap_at_once_get_one_secret() {
    let yard = Yard::new().await;
    let intent = yard.http.post(&project(INTENTS), wanted()).await.with(201);
    let token = intent["credential"]["token"].as_str().unwrap();
    let nobody = yard.http.bearing("");
    let shown = [("x-vault-token", token)];
    let tries = (0..100).map(|_| nobody.send(Method::POST, UNWRAP, &shown, None));
    let answers = join_all(tries).await;
    let (got, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((got.len(), refused.len()), (1, 99));
    assert!(got[0].body["data"]["password"].as_str().unwrap().chars().all(|c| c.is_ascii_alphanumeric()));
    let told = json!({ "errors": ["wrapping token is not valid or does not exist"] });
    assert!(refused.iter().all(|answer| answer.status == 400 && answer.body == told));
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrapped_secret_is_told_as_vault_tells_it() {
    let yard = Yard::new().await;
    let nobody = yard.http.bearing("");
    let intent = yard.http.post(&project(INTENTS), wanted()).await.with(201);
    let token = intent["credential"]["token"].as_str().unwrap().to_owned();
    let looked = nobody.post("/v1/sys/wrapping/lookup", json!({ "token": token })).await.with(200);
    assert_eq!(looked["data"]["creation_path"], "artifact/publish");
    assert_eq!(looked["data"]["creation_ttl"], 3600);
    let alone = nobody.post(UNWRAP, json!({ "token": token })).await.with(403);
    assert_eq!(alone, json!({ "errors": ["missing client token"] }));
    let opened = nobody.bearing(&token).post(UNWRAP, json!({})).await.with(200);
    let empty = json!({ "lease_id": "", "renewable": false, "lease_duration": 0, "wrap_info": null, "warnings": null, "auth": null });
    for (field, value) in empty.as_object().unwrap() {
        assert_eq!(opened[field], *value, "{field}");
    }
    assert_eq!(opened["data"]["username"], intent["id"]);
    assert_eq!(opened["data"]["registry"], yard.registry.host);

    let late = yard.http.post(&project(INTENTS), wanted()).await.with(201);
    yard.story.advance(Duration::from_secs(3601)).await;
    assert_eq!(unwrapped(&yard, &late).await.status, 400, "an intent's secret ends with it");
    let kept: i64 =
        sqlx::query_scalar("select count(*) from wrapped_secrets where sealed like '%' || $1 || '%'")
            .bind(opened["data"]["password"].as_str().unwrap())
            .fetch_one(&yard.story.pool)
            .await
            .unwrap();
    assert_eq!(kept, 0);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_intent_is_the_first_one_without_its_secret() {
    let yard = Yard::new().await;
    let key = [("x-idempotency-key", "once")];
    let path = project(INTENTS);
    let ask = || yard.http.send(Method::POST, &path, &key, Some(wanted()));
    let first = ask().await.with(201);
    let again = ask().await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    let again = again.with(201);
    assert_eq!(again["id"], first["id"]);
    assert_eq!(
        (&again["credential"]["token"], &again["secret_already_delivered"]),
        (&json!(null), &json!(true))
    );
    assert_eq!(again["credential"]["unwrap_path"], first["credential"]["unwrap_path"]);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_intent_pulls_and_a_revoked_artifact_gets_none() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    let wanted = json!({ "artifact_id": artifact["id"] });
    let pulls = project("/app-artifacts/pull-intents");
    let intent = yard.http.acting("publisher").post(&pulls, wanted.clone()).await.with(201);
    assert_eq!((&intent["digest"], &intent["repository"]), (&artifact["digest"], &artifact["repository"]));
    let credential = yard.unwrap(&intent).await;
    let repository = artifact["repository"].as_str().unwrap();
    let reader = yard.speak(repository, &credential);
    assert_eq!(reader.manifest(image.digest.as_str()).await.unwrap().bytes, image.manifest);
    assert!(reader.push_bytes(b"no").await.is_err(), "a pull intent may push");

    let revoke = project(&format!("/app-artifacts/{}/revoke", artifact["id"].as_str().unwrap()));
    let revoked =
        yard.http.acting("project-admin").post(&revoke, json!({ "reason": "leaked" })).await.with(200);
    assert_eq!((&revoked["trust_state"], &revoked["affected_instances"]), (&json!("revoked"), &json!([])));
    assert!(
        reader.manifest(image.digest.as_str()).await.is_err(),
        "a credential outlives the trust it was given for"
    );
    assert_eq!(
        yard.http.acting("publisher").post(&pulls, wanted).await.with(422)["code"],
        "artifact_untrusted"
    );
    let verify = revoke.replace("/revoke", "/verify");
    assert_eq!(yard.http.post(&verify, json!({})).await.with(409)["code"], "state_conflict");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_of_a_retired_version_gets_no_pull_intent() {
    let yard = Yard::new().await;
    let artifact = yard.publish(&Image::saying("hello")).await;
    let wanted = json!({ "artifact_id": artifact["id"] });
    let pulls = project("/app-artifacts/pull-intents");
    yard.http.acting("publisher").post(&pulls, wanted.clone()).await.with(201);
    let retired = acts(&yard.http, "hello", "1.0.0", "retire", json!({ "when": "now" })).await;
    assert_eq!(retired["status"], "retired");
    let refused = yard.http.acting("publisher").post(&pulls, wanted).await.with(422);
    assert_eq!(
        (&refused["code"], &refused["details"]["state"]),
        (&json!("artifact_not_deployable"), &json!("retired"))
    );
    assert_eq!(refused["message"], "hello 1.0.0 is retired.");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_tells_what_a_secret_that_was_opened_reaches() {
    let yard = Yard::new().await;
    let intent = yard.http.post(&project(INTENTS), wanted()).await.with(201);
    yard.unwrap(&intent).await;
    let told: (String, uuid::Uuid, Value) = sqlx::query_as(
        "select target, project_id, after from audit where action = 'unwrap_secret' and result = 'succeeded'",
    )
    .fetch_one(&yard.story.pool)
    .await
    .unwrap();
    let id = intent["id"].as_str().unwrap();
    assert_eq!((told.0, told.1), (format!("publish_intent:{id}"), crate::support::realm::EXAMPLE));
    assert_eq!(told.2, json!({ "repository": intent["repository"], "may_push": true }));
    yard.end().await;
}
