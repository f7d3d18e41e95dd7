//! The trust corpus: what must not be believed, each with its reason, and what may.

use clients::registry::Repository;
use domain::Digest;
use serde_json::{Value, json};

use super::signer;
use super::yard::{OURS, Yard};
use crate::catalog;
use crate::http::{Http, project};
use crate::support::image::{INDEX, Image, MANIFEST, digest};
use crate::support::realm::EXAMPLE;
use crate::support::registry;
use crate::support::story::Story;

const OURS_SEED: u8 = 1;
const STRANGER: u8 = 2;
const BUILDER: &str = "https://ci.example/builder";

/// A yard where signatures are required, with one signing key.
async fn strict() -> Yard {
    let yard = Yard::new().await;
    yard.policy("artifact.signature_required", json!(true)).await;
    let key = json!({ "name": "release", "public_key_pem": signer::public_key_pem(OURS_SEED) });
    yard.http.acting("project-admin").post(&project("/signing-keys"), key).await.with(201);
    yard
}

async fn verified(yard: &Yard, artifact: &Value) -> Value {
    let path = project(&format!("/app-artifacts/{}/verify", artifact["id"].as_str().unwrap()));
    yard.http.acting("publisher").post(&path, json!({})).await.with(200)
}

/// The codes of all checks that failed.
fn failures(artifact: &Value) -> Vec<&str> {
    let checks = artifact["evidence"]["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["passed"] == false).map(|check| check["code"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_requirement_the_digest_suffices() {
    let yard = Yard::new().await;
    let artifact = verified(&yard, &yard.publish(&Image::saying("hello")).await).await;
    assert_eq!(artifact["trust_state"], "verified");
    assert_eq!(yard.events().await, ["apps.artifact.published", "apps.artifact.verified"]);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signature_counts_only_for_its_image_and_by_a_key_of_the_project() {
    let yard = strict().await;
    let (image, other) = (Image::saying("hello"), Image::saying("something else"));
    let artifact = yard.publish(&image).await;
    let holder = yard.push(&other).await;
    let judged = async |code: &str| {
        let judged = verified(&yard, &artifact).await;
        assert_eq!(judged["trust_state"], "failed_verification", "{judged:#}");
        assert_eq!(failures(&judged), [code]);
    };
    judged("unsigned").await;
    signer::cosign(&holder, STRANGER, &image.digest, &image.digest).await;
    judged("wrong_key").await;
    signer::cosign(&holder, OURS_SEED, &other.digest, &image.digest).await;
    judged("signature_of_another").await;
    tampered(&holder, &image.digest).await;
    judged("wrong_key").await;
    signer::cosign(&holder, OURS_SEED, &image.digest, &image.digest).await;
    let good = verified(&yard, &artifact).await;
    assert_eq!(good["trust_state"], "verified", "{good:#}");
    let evidence = &good["evidence"]["signatures"][0];
    assert_eq!(
        (&evidence["subject"], &evidence["form"]),
        (&json!(image.digest), &json!("cosign_simple_signing"))
    );
    assert_eq!(evidence["payload"].as_str().unwrap().as_bytes(), signer::payload(&image.digest));
    yard.end().await;
}

/// A good signature over another payload than the one that lies there.
async fn tampered(repository: &Repository, of: &Digest) {
    let annotations =
        json!({ "dev.cosignproject.cosign/signature": signer::sign(OURS_SEED, b"something else") });
    let tag = format!("sha256-{}.sig", of.hex());
    signer::beside(repository, &tag, signer::SIMPLE, &signer::payload(of), annotations).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sigstore_bundle_counts_like_a_signature() {
    let yard = strict().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    let holder = yard.push(&image).await;
    signer::bundle(&holder, STRANGER, &image.digest).await;
    assert_eq!(failures(&verified(&yard, &artifact).await), ["wrong_key"]);
    signer::bundle(&holder, OURS_SEED, &image.digest).await;
    let good = verified(&yard, &artifact).await;
    assert_eq!((&good["trust_state"], failures(&good).len()), (&json!("verified"), 0), "{good:#}");
    assert_eq!(good["evidence"]["signatures"][0]["form"], "sigstore_bundle");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn provenance_must_name_an_allowed_builder_and_be_signed_by_the_project() {
    let yard = strict().await;
    yard.policy("artifact.provenance_required", json!(true)).await;
    yard.policy("artifact.source_allowlist", json!([BUILDER])).await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    let holder = yard.push(&image).await;
    signer::cosign(&holder, OURS_SEED, &image.digest, &image.digest).await;
    assert_eq!(failures(&verified(&yard, &artifact).await), ["no_provenance"]);
    signer::attest(&holder, OURS_SEED, &image.digest, "https://evil.example").await;
    assert_eq!(failures(&verified(&yard, &artifact).await), ["builder_not_allowed"]);
    signer::attest(&holder, STRANGER, &image.digest, BUILDER).await;
    assert_eq!(failures(&verified(&yard, &artifact).await), ["wrong_key"]);
    signer::attest(&holder, OURS_SEED, &image.digest, BUILDER).await;
    let good = verified(&yard, &artifact).await;
    assert_eq!(good["trust_state"], "verified", "{good:#}");
    assert_eq!(good["evidence"]["provenance"]["builder_id"], BUILDER);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_trusted_with_all_its_children_or_not_at_all() {
    let yard = strict().await;
    let (one, two) = (Image::saying("amd64"), Image::saying("arm64"));
    let holder = yard.push(&one).await;
    yard.push(&two).await;
    let entry = |image: &Image| json!({ "mediaType": MANIFEST, "digest": image.digest, "size": image.manifest.len() });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry(&one), entry(&two)] });
    let index = index.to_string().into_bytes();
    let whole = holder.push_manifest("index", INDEX, &index).await.unwrap();
    let more = json!({ "digest": digest(&index), "media_type": INDEX });
    let artifact = yard.register(&one, more).await.with(201);
    signer::cosign(&holder, OURS_SEED, &whole, &whole).await;
    signer::cosign(&holder, OURS_SEED, &one.digest, &one.digest).await;
    let judged = verified(&yard, &artifact).await;
    assert_eq!(
        (&judged["trust_state"], failures(&judged)),
        (&json!("failed_verification"), vec!["unsigned"])
    );
    signer::cosign(&holder, OURS_SEED, &two.digest, &two.digest).await;
    assert_eq!(verified(&yard, &artifact).await["trust_state"], "verified");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retired_key_vouches_for_nothing_new() {
    let yard = strict().await;
    let image = Image::saying("hello");
    let artifact = yard.publish(&image).await;
    signer::cosign(&yard.push(&image).await, OURS_SEED, &image.digest, &image.digest).await;
    assert_eq!(verified(&yard, &artifact).await["trust_state"], "verified");
    let keys = yard.http.get(&project("/signing-keys")).await.with(200);
    let retire = project(&format!("/signing-keys/{}/retire", keys["items"][0]["id"].as_str().unwrap()));
    yard.http.acting("project-admin").post(&retire, json!({})).await.with(200);
    assert_eq!(failures(&verified(&yard, &artifact).await), ["no_signing_key", "wrong_key"]);
    let bad = json!({ "name": "bad", "public_key_pem": "not a key" });
    assert_eq!(yard.http.post(&project("/signing-keys"), bad).await.with(400)["code"], "validation_error");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_intent_names_a_key_only_its_signature_counts_whoever_else_signed() {
    let yard = strict().await;
    let second = json!({ "name": "second", "public_key_pem": signer::public_key_pem(STRANGER) });
    let second = yard.http.acting("project-admin").post(&project("/signing-keys"), second).await.with(201);
    let image = Image::saying("hello");
    let holder = yard.push(&image).await;
    yard.intent(json!({ "signing_key_id": second["id"] })).await;
    let artifact = yard.register(&image, json!({})).await.with(201);
    signer::cosign(&holder, OURS_SEED, &image.digest, &image.digest).await;
    assert_eq!(failures(&verified(&yard, &artifact).await), ["wrong_key"]);
    // Both keys have signed now; the other one's signature is found first.
    signer::bundle(&holder, STRANGER, &image.digest).await;
    let good = verified(&yard, &artifact).await;
    assert_eq!(good["trust_state"], "verified", "{good:#}");
    assert_eq!(good["evidence"]["signatures"][0]["key_id"], second["id"]);
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_refuses_has_given_no_verdict() {
    let story = Story::new().await;
    let shelf = registry::shelf();
    let refusing = registry::refusing();
    let http = Http::with(&story, |state| state.with_depot(shelf)).await;
    catalog::register(&http, "hello", "1.0.0").await;
    let publisher = http.acting("publisher");
    let slot = json!({ "app_slug": "hello", "app_version": "1.0.0" });
    publisher.post(&project("/app-artifacts/publish-intents"), slot).await.with(201);
    let wanted =
        json!({ "app_slug": "hello", "app_version": "1.0.0", "digest": registry::shelve("believed") });
    let artifact = publisher.post(&project("/app-artifacts"), wanted).await.with(201);
    let verify = project(&format!("/app-artifacts/{}/verify", artifact["id"].as_str().unwrap()));
    assert_eq!(publisher.post(&verify, json!({})).await.with(200)["trust_state"], "verified");

    let misled = http.with_depot(refusing).acting("publisher");
    assert_eq!(misled.post(&verify, json!({})).await.with(502)["code"], "upstream_error");
    let shown = project(&format!("/app-artifacts/{}", artifact["id"].as_str().unwrap()));
    assert_eq!(publisher.get(&shown).await.with(200)["trust_state"], "verified", "nothing was found out");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_that_lists_referrers_is_asked_for_what_vouches_and_what_goes() {
    let story = Story::new().await;
    let shelf = registry::shelf();
    let repository = shelf.registry.repository(OURS);
    let http = Http::with(&story, |state| state.with_depot(shelf)).await;
    catalog::register(&http, "hello", "1.0.0").await;
    let policy = format!("/api/v1/admin/policies/project/{EXAMPLE}/artifact.signature_required");
    http.put(&policy, json!({ "value": true })).await.with(200);
    let key = json!({ "name": "release", "public_key_pem": signer::public_key_pem(OURS_SEED) });
    http.acting("project-admin").post(&project("/signing-keys"), key).await.with(201);
    let publisher = http.acting("publisher");
    let slot = json!({ "app_slug": "hello", "app_version": "1.0.0" });
    publisher.post(&project("/app-artifacts/publish-intents"), slot).await.with(201);
    let image = registry::shelve("listed by its registry");
    let wanted = json!({ "app_slug": "hello", "app_version": "1.0.0", "digest": image });
    let artifact = publisher.post(&project("/app-artifacts"), wanted).await.with(201);
    let verify = project(&format!("/app-artifacts/{}/verify", artifact["id"].as_str().unwrap()));
    assert_eq!(failures(&publisher.post(&verify, json!({})).await.with(200)), ["unsigned"]);

    let bundle = signer::signature_bundle(OURS_SEED, &image);
    registry::shelve_as(&digest(bundle.as_bytes()), bundle.as_bytes());
    let held = registry::refer(&image, signer::referring(&bundle, &image).as_bytes());
    // A list may name what is about another image; that does not go with this one.
    let other = registry::shelve("another image");
    registry::refer(&image, signer::referring("{}", &other).as_bytes());
    let good = publisher.post(&verify, json!({})).await.with(200);
    assert_eq!(good["evidence"]["signatures"][0]["manifest_digest"], json!(held), "{good:#}");
    assert_eq!(repository.beside(&image).await.unwrap(), [held]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_within_an_index_is_not_taken_whatever_it_is_said_to_be() {
    let yard = strict().await;
    let image = Image::saying("amd64");
    let artifact = yard.publish(&image).await;
    let holder = yard.push(&image).await;
    let leaf = json!({ "mediaType": MANIFEST, "digest": image.digest, "size": image.manifest.len() });
    let inner = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [leaf] }).to_string();
    let below = holder.push_manifest("inner", INDEX, inner.as_bytes()).await.unwrap();
    for said in [INDEX, MANIFEST] {
        let entry = json!({ "mediaType": said, "digest": below, "size": inner.len() });
        let outer = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] }).to_string();
        let whole = holder.push_manifest("outer", INDEX, outer.as_bytes()).await.unwrap();
        let refused = yard.register(&image, json!({ "digest": whole })).await.with(400);
        let why = &refused["details"]["errors"][0];
        assert_eq!(why["pointer"], "/digest", "{refused:#}");
        assert!(why["message"].as_str().unwrap().contains("an index within an index"), "{refused:#}");

        // One that was taken by an earlier release is not trusted, although everybody but the leaf is signed.
        signer::cosign(&holder, OURS_SEED, &whole, &whole).await;
        signer::cosign(&holder, OURS_SEED, &below, &below).await;
        sqlx::query("update app_artifacts set digest = $2 where id = $1::text::uuid")
            .bind(artifact["id"].as_str().unwrap())
            .bind(whole.as_str())
            .execute(&yard.story.pool)
            .await
            .unwrap();
        assert_eq!(failures(&verified(&yard, &artifact).await), ["nested_index"]);
    }
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_an_artifact_comes_from_is_judged_whenever_it_is_looked_at() {
    let yard = Yard::new().await;
    let artifact = verified(&yard, &yard.publish(&Image::saying("hello")).await).await;
    let source = &artifact["evidence"]["checks"][0];
    assert_eq!((&source["check"], &source["passed"]), (&json!("source"), &json!(true)));
    yard.policy("artifact.source_allowlist", json!(["gpuaas/apps/elsewhere"])).await;
    let asked = yard.act("publisher", &artifact, "promote", json!({ "channel": "dev" })).await.with(202);
    let run = asked["workflow"]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(yard.story.ends(run).await, engine::RunState::Failed);
    let judged = verified(&yard, &artifact).await;
    assert_eq!(failures(&judged), ["source_not_allowed"]);
    yard.policy("artifact.source_allowlist", json!(["gpuaas/apps/example"])).await;
    assert_eq!(verified(&yard, &artifact).await["trust_state"], "verified");
    yard.end().await;
}
