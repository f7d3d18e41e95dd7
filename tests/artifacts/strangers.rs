//! Docker's own client and skopeo are refused by the registry whenever the platform says so, and leave nothing behind.

use std::time::Duration;

use serde_json::json;

use super::yard::{Credential, OURS, Yard};
use crate::http::project;
use crate::support::cluster::Folder;
use crate::support::docker::Engine;
use crate::support::image::{self, Image};

/// Who tries.
enum Tool<'a> {
    Docker(&'a Engine),
    Skopeo(&'a Image),
}

impl Tool<'_> {
    fn name(&self) -> &'static str {
        match self {
            Tool::Docker(_) => "docker",
            Tool::Skopeo(_) => "skopeo",
        }
    }

    async fn push(&self, yard: &Yard, name: &str, credential: Option<&Credential>) -> Result<(), String> {
        match self {
            Tool::Docker(engine) => {
                engine.docker(&["tag", &engine.stage.digest, name])?;
                log_in(engine, yard, credential)?;
                engine.docker(&["push", "--quiet", name]).map(drop)
            }
            Tool::Skopeo(image) => {
                said(image::push(image, name, credential.and_then(Credential::pair)).await)
            }
        }
    }

    async fn pull(&self, yard: &Yard, name: &str, credential: Option<&Credential>) -> Result<(), String> {
        match self {
            Tool::Docker(engine) => {
                log_in(engine, yard, credential)?;
                engine.docker(&["pull", "--quiet", name]).map(drop)
            }
            Tool::Skopeo(_) => {
                let folder = Folder::new();
                said(image::pull(name, &folder.0.join("it"), credential.and_then(Credential::pair)).await)
            }
        }
    }
}

/// With nothing but this: what was shown before is forgotten.
fn log_in(engine: &Engine, yard: &Yard, credential: Option<&Credential>) -> Result<(), String> {
    engine.docker(&["logout", &yard.registry.host])?;
    let Some(with) = credential else { return Ok(()) };
    engine.log_in(&yard.registry.host, &with.username, &with.password).map(drop)
}

fn said(said: image::Said) -> Result<(), String> {
    if said.done { Ok(()) } else { Err(said.words) }
}

/// As these tools say that somebody may not.
fn is_refusal(words: &str) -> bool {
    let words = words.to_lowercase();
    ["denied", "unauthorized", "authentication required", "unable to retrieve auth token", "no basic auth"]
        .iter()
        .any(|sign| words.contains(sign))
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_docker_nor_skopeo_gets_past_a_credential_that_does_not_reach() {
    let engine = Engine::start().await;
    let yard = Yard::new().await;
    let image = Image::saying("hello");
    let expired = yard.credential(OURS, true, 600).await;
    let good = yard.credential(OURS, true, 6000).await;
    let reader = yard.credential(OURS, false, 6000).await;
    let foreign = yard.credential("gpuaas/apps/next-door/hello", true, 6000).await;
    let repository = yard.registry.client().repository(OURS);
    for tool in [Tool::Docker(&engine), Tool::Skopeo(&image)] {
        let there = yard.name(OURS, &format!(":{}", tool.name()));
        tool.push(&yard, &there, Some(&good)).await.expect("the right one reaches");
        tool.pull(&yard, &there, Some(&reader)).await.expect("to pull, one that may only pull will do");
    }
    yard.story.advance(Duration::from_secs(601)).await;
    for tool in [Tool::Docker(&engine), Tool::Skopeo(&image)] {
        for (why, credential) in [
            ("expired", Some(&expired)),
            ("pull-only", Some(&reader)),
            ("foreign", Some(&foreign)),
            ("missing", None),
        ] {
            let tag = format!("{}-{why}", tool.name());
            let words = tool.push(&yard, &yard.name(OURS, &format!(":{tag}")), credential).await.unwrap_err();
            assert!(is_refusal(&words), "{tag} failed otherwise: {words}");
            assert!(repository.find_manifest(&tag).await.unwrap().is_none(), "{tag} is there");
        }
        let there = yard.name(OURS, &format!(":{}", tool.name()));
        for (why, credential) in [("expired", Some(&expired)), ("foreign", Some(&foreign)), ("missing", None)]
        {
            let words = tool.pull(&yard, &there, credential).await.unwrap_err();
            assert!(is_refusal(&words), "{} with one that is {why} failed otherwise: {words}", tool.name());
        }
    }
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_pushes_with_the_very_credential_that_an_intents_token_opens() {
    let engine = Engine::start().await;
    let yard = Yard::new().await;
    let intent = yard.intent(json!({})).await;
    let credential = yard.unwrap(&intent).await;
    let text = |name: &str| intent[name].as_str().unwrap().to_owned();
    assert_eq!(text("registry"), yard.registry.host);
    let there = format!("{}/{}:{}", text("registry"), text("repository"), text("tag"));
    let tool = Tool::Docker(&engine);
    tool.push(&yard, &there, Some(&credential)).await.expect("an intent's own credential reaches");
    let pushed = yard.registry.client().repository(OURS).manifest(&text("tag")).await.unwrap();
    let wanted = json!({
        "app_slug": "hello", "app_version": "1.0.0", "digest": pushed.digest, "tag": text("tag"), "intent_id": intent["id"],
    });
    yard.http.acting("publisher").post(&project("/app-artifacts"), wanted).await.with(201);
    let words = tool.push(&yard, &yard.name("gpuaas/apps/next-door/hello", ":v1"), Some(&credential)).await;
    assert!(is_refusal(&words.unwrap_err()));
    yard.end().await;
}
