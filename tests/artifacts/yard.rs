//! The place of these stories: a platform on a real address with its own workers, and a real registry that asks it who
//! may come in.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use activities::Env;
use api::Depot;
use axum::http::Method;
use clients::blobs::{Blobs, Disk};
use clients::registry::Repository;
use clients::wrapping::Wrapping;
use domain::Secret;
use engine::{RunState, Workers};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::registry_credentials::{self, NewCredential};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::catalog;
use crate::http::{Answer, Http, project};
use crate::support::cluster::Folder;
use crate::support::cutter::Cutter;
use crate::support::image::{self, Image};
use crate::support::outsider::short_lease;
use crate::support::realm;
use crate::support::registry::{TestRegistry, wrapping};
use crate::support::story::{Story, quick};

/// The repository of the app `hello` of the project `example`.
pub const OURS: &str = "gpuaas/apps/example/hello";

pub struct Yard {
    pub story: Story,
    pub http: Http,
    /// Where the platform is.
    pub address: SocketAddr,
    pub registry: TestRegistry,
    /// Where blobs are kept.
    pub blobs: Folder,
    env: Arc<Env>,
    workers: Option<Workers>,
}

/// What somebody was given to reach one repository.
pub struct Credential {
    pub username: String,
    pub password: String,
}

impl Credential {
    pub fn pair(&self) -> Option<(&str, &str)> {
        Some((&self.username, &self.password))
    }
}

impl Yard {
    /// With the app `hello` in the catalog, which the project `example` owns.
    pub async fn new() -> Yard {
        Yard::wrapping_by(wrapping()).await
    }

    /// The same, where somebody else hands credentials over.
    pub async fn wrapping_by(wrapping: Wrapping) -> Yard {
        Yard::made_of(wrapping, None).await
    }

    /// The same, where blobs are kept somewhere else than on a disk.
    pub async fn keeping_in(blobs: Blobs) -> Yard {
        Yard::made_of(wrapping(), Some(blobs)).await
    }

    /// The same, where nobody works until it is asked for.
    pub async fn idle() -> Yard {
        Yard::resting(Story::idle(short_lease(), None).await, wrapping(), None).await
    }

    async fn made_of(wrapping: Wrapping, store: Option<Blobs>) -> Yard {
        let mut yard = Yard::resting(Story::idle(quick(), None).await, wrapping, store).await;
        yard.work();
        yard
    }

    pub fn work(&mut self) {
        self.workers = Some(Workers::start(&self.story.engine, self.env.clone(), workflows::registry()));
    }

    async fn resting(story: Story, wrapping: Wrapping, store: Option<Blobs>) -> Yard {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let registry = TestRegistry::start(address);
        let blobs = Folder::new();
        let store = store.unwrap_or_else(|| Blobs::Disk(Disk::open(&blobs.0).unwrap()));
        let depot = Depot { registry: registry.client(), blobs: Some(store.clone()), wrapping };
        let env = Env::new(story.engine.clone()).with_registry(registry.client()).with_blobs(store);
        let http = Http::with(&story, |state| state.with_depot(depot)).await;
        http.listen_on(listener);
        catalog::register(&http, "hello", "1.0.0").await;
        Yard { story, http, address, registry, blobs, env: Arc::new(env), workers: None }
    }

    /// A credential as an intent would make it.
    pub async fn credential(&self, repository: &str, may_push: bool, ttl_seconds: i32) -> Credential {
        let (id, password) = (Uuid::now_v7(), Uuid::new_v4().simple().to_string());
        let new = NewCredential {
            id,
            org_id: realm::DEMO,
            project_id: realm::EXAMPLE,
            repository,
            may_push,
            secret_hash: &Sha256::digest(&password),
            ttl_seconds,
        };
        let mut conn = self.story.pool.acquire().await.unwrap();
        registry_credentials::insert(&mut conn, &new).await.unwrap();
        Credential { username: id.to_string(), password }
    }

    /// `host:port/repository` and what follows.
    pub fn name(&self, repository: &str, reference: &str) -> String {
        format!("{}/{repository}{reference}", self.registry.host)
    }

    /// The repository as whoever holds the credential speaks to it.
    pub fn speak(&self, repository: &str, with: &Credential) -> Repository {
        let url = format!("http://{}", self.registry.host);
        let password = Secret::new(with.password.clone());
        Repository::with_credential(&url, repository, &with.username, password).unwrap()
    }

    /// The same, over a wire that may break.
    pub fn speak_through(&self, wire: &Cutter, repository: &str, with: &Credential) -> Repository {
        let password = Secret::new(with.password.clone());
        let url = format!("http://{}", wire.address);
        Repository::with_credential(&url, repository, &with.username, password).unwrap()
    }

    /// What an intent's token opens.
    pub async fn unwrap(&self, intent: &Value) -> Credential {
        let opened = unwrapped(self, intent).await.with(200);
        let text = |name: &str| opened["data"][name].as_str().unwrap().to_owned();
        Credential { username: text("username"), password: text("password") }
    }

    pub async fn intent(&self, more: Value) -> Value {
        let mut wanted = json!({ "app_slug": "hello", "app_version": "1.0.0" });
        merge(&mut wanted, more);
        self.http.acting("publisher").post(&project("/app-artifacts/publish-intents"), wanted).await.with(201)
    }

    /// Pushes as a team would: with an intent's credential.
    pub async fn push(&self, image: &Image) -> Repository {
        let intent = self.intent(json!({})).await;
        let repository = self.speak(OURS, &self.unwrap(&intent).await);
        for blob in image.blobs() {
            repository.push_bytes(&blob).await.unwrap();
        }
        repository.push_manifest("1.0.0", image::MANIFEST, &image.manifest).await.unwrap();
        repository
    }

    pub async fn register(&self, image: &Image, more: Value) -> Answer {
        let mut wanted = json!({ "app_slug": "hello", "app_version": "1.0.0", "digest": image.digest });
        merge(&mut wanted, more);
        self.http.acting("publisher").post(&project("/app-artifacts"), wanted).await
    }

    pub async fn publish(&self, image: &Image) -> Value {
        self.push(image).await;
        self.register(image, json!({})).await.with(201)
    }

    /// The types of everything that was told of artifacts, in order.
    pub async fn events(&self) -> Vec<String> {
        let told = "select type from outbox where type like 'apps.artifact.%' order by pos";
        sqlx::query_scalar(told).fetch_all(&self.story.pool).await.unwrap()
    }

    /// How many intents and artifacts there are.
    pub async fn rows(&self) -> i64 {
        let all = "select (select count(*) from publish_intents) + (select count(*) from app_artifacts)";
        sqlx::query_scalar(all).fetch_one(&self.story.pool).await.unwrap()
    }

    pub async fn policy(&self, key: &str, value: Value) {
        let path = format!("/api/v1/admin/policies/project/{}/{key}", realm::EXAMPLE);
        self.http.put(&path, json!({ "value": value })).await.with(200);
    }

    /// Asks for an action and answers what was accepted, with the run.
    pub async fn act(&self, who: &str, artifact: &Value, verb: &str, body: Value) -> Answer {
        let path = project(&format!("/app-artifacts/{}/{verb}", artifact["id"].as_str().unwrap()));
        self.http.acting(who).post(&path, body).await
    }

    /// Retires at once and lets the bytes go.
    pub async fn retired(&self, artifact: &Value) {
        let accepted =
            self.act("project-admin", artifact, "retire", json!({ "when": "now" })).await.with(202);
        let run = accepted["workflow"]["id"].as_str().unwrap().parse().unwrap();
        self.story.until(run, &[RunState::Waiting]).await;
        self.story.advance(Duration::from_secs(7 * 86_400 + 1)).await;
        assert_eq!(self.story.ends(run).await, RunState::Succeeded, "{}", self.story.describe(run).await);
    }

    /// The address of a blob of `hello` 1.0.0.
    pub fn source_uri(&self, name: &str) -> String {
        format!("artifact_store://projects/{}/artifacts/hello/1.0.0/{name}", realm::EXAMPLE)
    }

    /// How many blobs were taken and are there.
    pub fn kept_blobs(&self) -> usize {
        let folder = self.blobs.0.join(format!("projects/{}/artifacts/hello/1.0.0/weights", realm::EXAMPLE));
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    }

    pub async fn shown(&self, artifact: &Value) -> Value {
        self.http
            .get(&project(&format!("/app-artifacts/{}", artifact["id"].as_str().unwrap())))
            .await
            .with(200)
    }

    pub async fn end(self) {
        if let Some(workers) = self.workers {
            workers.stop().await;
        }
        drop(self.registry);
        self.story.end().await;
    }
}

/// The whole answer, for those who expect a refusal.
pub async fn unwrapped(yard: &Yard, intent: &Value) -> Answer {
    let token = intent["credential"]["token"].as_str().unwrap();
    let path = intent["credential"]["unwrap_path"].as_str().unwrap();
    yard.http.bearing("").send(Method::POST, path, &[("x-vault-token", token)], None).await
}

fn merge(wanted: &mut Value, more: Value) {
    for (name, value) in more.as_object().unwrap() {
        wanted[name] = value.clone();
    }
}
