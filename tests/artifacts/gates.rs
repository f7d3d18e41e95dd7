//! Which channel takes an artifact: what its gate asks for decides about the channel, and about nothing else.

use engine::RunState;
use serde_json::json;

use super::lifecycle::ended;
use super::signer;
use super::yard::Yard;
use crate::http::project;
use crate::support::image::{INDEX, Image, MANIFEST};

#[tokio::test(flavor = "multi_thread")]
async fn a_shut_gate_keeps_an_artifact_out_of_its_channel_and_takes_no_trust_away() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    yard.act("publisher", &artifact, "verify", json!({})).await.with(200);
    let gates = json!({ "prod": { "after": ["staging"] }, "staging": { "signature": true } });
    yard.policy("artifact.channel_gates", gates).await;
    let refused = yard.act("publisher", &artifact, "promote", json!({ "channel": "prod" })).await.with(202);
    assert_eq!(ended(&yard, &refused).await, (RunState::Failed, json!("policy_denied")));
    let unsigned =
        yard.act("publisher", &artifact, "promote", json!({ "channel": "staging" })).await.with(202);
    assert_eq!(ended(&yard, &unsigned).await, (RunState::Failed, json!("policy_denied")));
    let shown = yard.shown(&artifact).await;
    assert_eq!(
        (&shown["trust_state"], &shown["channels"], &shown["lifecycle_state"]),
        (&json!("verified"), &json!([]), &json!("published")),
        "whoever runs it goes on"
    );
    assert!(!yard.events().await.iter().any(|kind| kind.ends_with("verification_failed")));

    let key = json!({ "name": "release", "public_key_pem": signer::public_key_pem(1) });
    yard.http.acting("project-admin").post(&project("/signing-keys"), key).await.with(201);
    signer::cosign(&yard.push(&image).await, 1, &image.digest, &image.digest).await;
    for channel in ["staging", "prod"] {
        let signed =
            yard.act("publisher", &artifact, "promote", json!({ "channel": channel })).await.with(202);
        assert_eq!(ended(&yard, &signed).await.0, RunState::Succeeded, "{channel} is open now");
    }
    // What policy itself requires is another matter.
    yard.policy("artifact.provenance_required", json!(true)).await;
    let untrusted = yard.act("publisher", &artifact, "promote", json!({ "channel": "dev" })).await.with(202);
    assert_eq!(ended(&yard, &untrusted).await, (RunState::Failed, json!("artifact_untrusted")));
    assert_eq!(yard.shown(&artifact).await["trust_state"], "failed_verification");
    yard.act("project-admin", &artifact, "revoke", json!({})).await.with(200);
    let revoked = yard.act("publisher", &artifact, "promote", json!({ "channel": "dev" })).await.with(422);
    assert_eq!(revoked["code"], "artifact_untrusted");
    assert_eq!(yard.shown(&artifact).await["allowed_actions"], json!(["deprecate", "retire"]));
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_promote_only_where_policy_lets_them() {
    let yard = Yard::new().await;
    let artifact = yard.publish(&Image::saying("hello")).await;
    let body = json!({ "name": "ci", "permissions": ["apps.artifact.promote", "apps.artifact.read"] });
    let made = yard.http.acting("project-admin").post(&project("/service-accounts"), body).await.with(201);
    let proof = json!({
        "service_account_id": made["id"], "key_id": made["key_id"], "private_key_pem": made["private_key_pem"],
    });
    let token = yard.http.bearing("").post("/api/v1/auth/service-account/token", proof).await.with(200);
    let machine = yard.http.bearing(token["access_token"].as_str().unwrap());
    let path = project(&format!("/app-artifacts/{}/promote", artifact["id"].as_str().unwrap()));
    let refused = machine.post(&path, json!({ "channel": "prod" })).await.with(403);
    assert_eq!(
        (&refused["code"], &refused["details"]["allowed"]),
        (&json!("policy_denied"), &json!(["dev", "test"]))
    );
    let accepted = machine.post(&path, json!({ "channel": "test" })).await.with(202);
    assert_eq!(ended(&yard, &accepted).await.0, RunState::Succeeded);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_for_signed_artifacts_takes_an_index_only_with_every_child_signed() {
    let yard = Yard::new().await;
    let key = json!({ "name": "release", "public_key_pem": signer::public_key_pem(1) });
    yard.http.acting("project-admin").post(&project("/signing-keys"), key).await.with(201);
    yard.policy("artifact.channel_gates", json!({ "prod": { "signature": true } })).await;
    let (one, two) = (Image::saying("amd64"), Image::saying("arm64"));
    yard.push(&one).await;
    let holder = yard.push(&two).await;
    let entry = |image: &Image| json!({ "mediaType": MANIFEST, "digest": image.digest, "size": image.manifest.len() });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry(&one), entry(&two)] });
    let whole = holder.push_manifest("index", INDEX, index.to_string().as_bytes()).await.unwrap();
    let artifact = yard.register(&one, json!({ "digest": whole })).await.with(201);
    signer::cosign(&holder, 1, &whole, &whole).await;
    signer::cosign(&holder, 1, &one.digest, &one.digest).await;
    let promote = async || {
        let asked = yard.act("publisher", &artifact, "promote", json!({ "channel": "prod" })).await.with(202);
        ended(&yard, &asked).await
    };
    assert_eq!(promote().await, (RunState::Failed, json!("policy_denied")));
    assert_eq!(yard.shown(&artifact).await["trust_state"], "verified");
    signer::cosign(&holder, 1, &two.digest, &two.digest).await;
    assert_eq!(promote().await.0, RunState::Succeeded);
    yard.end().await;
}
