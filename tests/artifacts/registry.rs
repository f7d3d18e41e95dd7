//! A credential reaches one repository until a moment, and the registry keeps to what the platform says.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use chrono::{TimeDelta, Utc};
use clients::clock::ManualClock;
use clients::registry::RegistryFault;
use serde_json::{Value, json};

use super::yard::{Credential, OURS, Yard};
use crate::http::Answer;
use crate::support::cluster::Folder;
use crate::support::cutter::Cutter;
use crate::support::image::{self, Image};
use crate::support::registry::{EVENTS_SECRET, SERVICE};

const THEIRS: &str = "gpuaas/apps/next-door/hello";

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_reaches_its_repository_and_nothing_else() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let (ours, theirs) = (yard.name(OURS, ":v1"), yard.name(THEIRS, ":v1"));
    let publish = yard.credential(OURS, true, 900).await;
    let neighbour = yard.credential(THEIRS, true, 900).await;
    let reader = yard.credential(OURS, false, 900).await;

    let said = image::push(&image, &ours, publish.pair()).await;
    assert!(said.done, "{}", said.words);
    for (why, name, credential) in [
        ("another repository", &theirs, publish.pair()),
        ("another project's credential", &ours, neighbour.pair()),
        ("a pull-only credential", &ours, reader.pair()),
        ("no credential", &ours, None),
        ("a wrong password", &ours, Some((publish.username.as_str(), "hunter2"))),
        ("somebody unknown", &ours, Some(("somebody", publish.password.as_str()))),
    ] {
        let other = Image::saying(why);
        let said = image::push(&other, name, credential).await;
        assert!(!said.done, "{why} may push");
    }

    let folder = Folder::new();
    let by_digest = yard.name(OURS, &format!("@{}", image.digest));
    let said = image::pull(&by_digest, &folder.0.join("reader"), reader.pair()).await;
    assert!(said.done, "{}", said.words);
    for (why, credential) in [("no credential", None), ("another project's", neighbour.pair())] {
        let said = image::pull(&by_digest, &folder.0.join("other"), credential).await;
        assert!(!said.done, "{why} may pull");
    }
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_good_until_it_expires_or_is_revoked() {
    let yard = Yard::new().await;
    let (short, long) = (yard.credential(OURS, true, 600).await, yard.credential(OURS, true, 6000).await);
    for credential in [&short, &long] {
        yard.speak(OURS, credential).push_bytes(b"in time").await.unwrap();
    }
    yard.story.advance(Duration::from_secs(601)).await;
    let late = yard.speak(OURS, &short).push_bytes(b"too late").await.unwrap_err();
    assert!(matches!(&late, RegistryFault::Refused(said) if said.contains("expired")), "{late}");
    yard.speak(OURS, &long).push_bytes(b"still in time").await.unwrap();

    let mut conn = yard.story.pool.acquire().await.unwrap();
    store::registry_credentials::revoke(&mut conn, long.username.parse().unwrap()).await.unwrap();
    drop(conn);
    assert!(yard.speak(OURS, &long).push_bytes(b"revoked").await.is_err());
    yard.end().await;
}

/// Every process of a platform signs with a leaf of its own; the registry knows only the authority.
#[tokio::test(flavor = "multi_thread")]
async fn the_registry_believes_every_leaf_of_its_authority_and_no_other() {
    let yard = Yard::new().await;
    let publish = yard.credential(OURS, true, 900).await;
    let image = Image::saying("hello");
    assert!(image::push(&image, &yard.name(OURS, ":v1"), publish.pair()).await.done);
    for _ in 0..2 {
        let read = yard.registry.client().repository(OURS).manifest(image.digest.as_str()).await.unwrap();
        assert_eq!((read.digest, read.bytes), (image.digest.clone(), image.manifest.clone()));
    }
    let elsewhere = Yard::new().await;
    let url = format!("http://{}", yard.registry.host);
    let stranger = elsewhere.registry.client_to(&url).repository(OURS).manifest("v1").await.unwrap_err();
    assert!(matches!(stranger, RegistryFault::Refused(_)), "{stranger}");
    elsewhere.end().await;
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_registry_gives_is_hashed_before_it_is_believed() {
    let yard = Yard::new().await;
    let publish = yard.credential(OURS, true, 900).await;
    let image = Image::saying("hello");
    assert!(image::push(&image, &yard.name(OURS, ":v1"), publish.pair()).await.done);
    std::fs::write(yard.registry.blob_file(&image.digest), &image.manifest[..image.manifest.len() - 1])
        .unwrap();
    let repository = yard.registry.client().repository(OURS);
    assert!(repository.manifest(image.digest.as_str()).await.is_err(), "a truncated manifest is believed");
    let absent = repository.manifest("sha256-nothing").await.unwrap_err();
    assert!(matches!(absent, RegistryFault::Absent { .. }), "{absent}");
    yard.end().await;
}

async fn ask(yard: &Yard, query: &str, credential: Option<&Credential>) -> Answer {
    let basic = credential.map(|with| {
        format!("Basic {}", BASE64_STANDARD.encode(format!("{}:{}", with.username, with.password)))
    });
    let header = basic.as_deref().map(|value| ("authorization", value));
    let nobody = yard.http.bearing("");
    nobody.send(Method::GET, &format!("/registry/token?{query}"), header.as_slice(), None).await
}

fn access(answer: &Value) -> Value {
    let claims = answer["token"].as_str().unwrap().split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    claims["access"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_holds_what_was_asked_and_is_allowed() {
    let yard = Yard::new().await;
    let publish = yard.credential(OURS, true, 900).await;
    let both = json!([{ "type": "repository", "name": OURS, "actions": ["pull", "push"] }]);
    let scope = |name: &str, actions: &str| format!("service={SERVICE}&scope=repository:{name}:{actions}");
    for (query, expected) in [
        (scope(OURS, "push,pull"), both.clone()),
        (format!("{}&scope=repository:{THEIRS}:pull", scope(OURS, "pull,push")), both.clone()),
        (format!("{}%20repository:{THEIRS}:pull", scope(OURS, "pull,push")), both),
        (scope(OURS, "delete"), json!([])),
        (scope(THEIRS, "pull"), json!([])),
        (format!("service={SERVICE}&scope=registry:catalog:*"), json!([])),
        // `docker login` asks for nothing.
        (format!("service={SERVICE}&account=me&client_id=docker&offline_token=true"), json!([])),
    ] {
        let answer = ask(&yard, &query, Some(&publish)).await;
        assert_eq!(answer.header("cache-control"), "no-store");
        let answer = answer.with(200);
        assert_eq!(access(&answer), expected, "{query}");
        assert_eq!(answer["token"], answer["access_token"]);
        assert_eq!(answer["expires_in"], 300);
    }
    let short = yard.credential(OURS, true, 90).await;
    let answer = ask(&yard, &scope(OURS, "pull"), Some(&short)).await.with(200);
    assert!(
        answer["expires_in"].as_i64().unwrap() <= 30,
        "registries add a minute, so it is taken away here"
    );

    let refused = ask(&yard, &scope(OURS, "pull"), None).await.with(401);
    assert_eq!(refused["errors"][0]["code"], "UNAUTHORIZED");
    let refused = ask(&yard, "service=another", Some(&publish)).await.with(400);
    assert_eq!(refused["errors"][0]["code"], "UNSUPPORTED");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_are_noted_as_hints_from_the_registry_alone() {
    let yard = Yard::new().await;
    let publish = yard.credential(OURS, true, 900).await;
    let image = Image::saying("hello");
    assert!(image::push(&image, &yard.name(OURS, ":v1"), publish.pair()).await.done);
    yard.story
        .until_true(
            "the registry has told of the push",
            "select exists (select 1 from registry_pushes where credential_id = $1 and digest = $2[1] and tag = 'v1')",
            publish.username.parse().unwrap(),
            &[image.digest.as_str()],
        )
        .await;

    let forged = json!({ "events": [{
        "id": "forged", "action": "push", "actor": { "name": publish.username },
        "target": { "repository": THEIRS, "digest": image.digest, "tag": "v2" },
    }] });
    let path = "/internal/v1/registry/events";
    for bearer in ["", "hunter2"] {
        let refused = yard.http.bearing(bearer).post(path, forged.clone()).await;
        assert_eq!(refused.with(401)["code"], "token_invalid");
    }
    assert_eq!(yard.http.bearing(EVENTS_SECRET).post(path, forged).await.status, 204);
    let kept: i64 = sqlx::query_scalar("select count(*) from registry_pushes where event_id = 'forged'")
        .fetch_one(&yard.story.pool)
        .await
        .unwrap();
    assert_eq!(kept, 0, "a credential pushes to its own repository alone");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_platform_tells_which_registry_it_speaks_for() {
    let yard = Yard::new().await;
    let told = yard.http.acting("viewer").get("/api/v1/apps/registry").await.with(200);
    assert_eq!(told["registry_host"], yard.registry.host.as_str());
    assert_eq!((&told["digest_only"], &told["namespace_ownership_mode"]), (&json!(true), &json!("platform")));
    assert_eq!(told["repository_template"], "gpuaas/apps/<project-slug>/<app-slug>");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_registry_believes_tokens_of_a_process_whose_certificate_has_long_run_out() {
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    yard.push(&image).await;
    let clock = Arc::new(ManualClock::at(Utc::now() - TimeDelta::hours(25)));
    let repository = yard.registry.client_by(clock.clone()).repository(OURS);
    assert!(repository.manifest(image.digest.as_str()).await.is_err(), "a token of yesterday");
    clock.advance(TimeDelta::hours(25));
    repository.manifest(image.digest.as_str()).await.expect("a certificate of today");
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_whose_connection_breaks_is_whole_in_the_end() {
    let yard = Yard::new().await;
    let publish = yard.credential(OURS, true, 900).await;
    // More than goes at a time, and cut within the second part.
    let layer: Vec<u8> = (0..70 << 20).map(|at: u32| (at / 997 % 251) as u8).collect();
    let wire = Cutter::before(&yard.registry.host, 66 << 20).await;
    let holder = yard.speak_through(&wire, OURS, &publish).patient_for(Duration::from_secs(20));
    let pushed = holder.push_bytes(&layer).await.expect("it goes on by itself");
    assert!(wire.has_cut(), "nothing broke, which proves nothing");
    let kept = std::fs::read(yard.registry.blob_file(&pushed)).unwrap();
    assert!(kept == layer, "the registry has other bytes");
    yard.end().await;
}
