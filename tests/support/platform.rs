//! The whole platform in a story: the API, the workers that drive instances, a registry, a door for agents, a node with an
//! agent and an allocation on it. Versions come into the catalog and instances out of it by the routes that people use.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use activities::{Env, TaskSigners};
use agent::Driver;
use api::Depot;
use clients::registry::Registry;
use engine::{RunState, Workers};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::agent::{Door, RunningAgent};
use super::docker::Engine;
use super::realm::EXAMPLE;
use super::registry::{TestRegistry, shelf, shelve, wrapping};
use super::story::{Story, quick};
use crate::catalog::acts;
use crate::http::{Answer, Http, admin, project};

pub struct Platform {
    pub story: Story,
    pub http: Http,
    pub door: Door,
    /// Where images are pushed to and pulled from, if they are.
    pub registry: Option<TestRegistry>,
    workers: Option<Workers>,
    versions: AtomicU32,
}

impl Platform {
    /// With a registry of which only manifests can be read: enough for nodes that only pretend.
    pub async fn new() -> Platform {
        let story = Story::idle(quick(), None).await;
        let depot = shelf();
        let registry = depot.registry.clone();
        let http = Http::with(&story, |state| state.with_depot(depot)).await;
        Platform::of(story, http, None).await.working_with(registry)
    }

    /// With a real registry, which asks the platform who may pull.
    pub async fn with_registry() -> Platform {
        let (platform, client) = Platform::without_workers().await;
        platform.working_with(client)
    }

    /// The same, where other processes drive the runs.
    pub async fn without_workers() -> (Platform, Registry) {
        let story = Story::idle(quick(), None).await;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let registry = TestRegistry::start(listener.local_addr().expect("an address"));
        let client = registry.client();
        let depot = Depot { registry: client.clone(), blobs: None, wrapping: wrapping() };
        let http = Http::with(&story, |state| state.with_depot(depot)).await;
        http.listen_on(listener);
        (Platform::of(story, http, Some(registry)).await, client)
    }

    async fn of(story: Story, http: Http, registry: Option<TestRegistry>) -> Platform {
        let door = Door::open(&http).await;
        Platform { story, http, door, registry, workers: None, versions: AtomicU32::new(0) }
    }

    fn working_with(mut self, client: Registry) -> Platform {
        let signers = TaskSigners::new(self.http.realm.keys.sealer.clone());
        let env = Env::new(self.story.engine.clone()).with_signers(signers).with_registry(client);
        self.workers = Some(Workers::start(&self.story.engine, Arc::new(env), workflows::registry()));
        self
    }

    /// A node with an agent, and an allocation of so many GPUs on it.
    pub async fn node<D: Driver + Clone>(&self, name: &str, driver: &D, gpus: i32) -> (RunningAgent, Uuid) {
        let agent = RunningAgent::enrol(&self.http, &self.door, name, driver).await;
        let body = json!({
            "project_id": EXAMPLE, "node_id": agent.id, "capacity_shape": "gpu_slice", "gpu_count": gpus,
            "cpu_cores": 8, "memory_gib": 64,
        });
        let made = self.http.post(&admin("/allocations"), body).await.with(201);
        (agent, id_of(&made))
    }

    /// A new version of the app `hello`, active, whose image nobody can run: its number.
    pub async fn version(&self, profile: &Value) -> String {
        let number = self.draft(json!({ "runtime_profile": profile })).await;
        self.artifact(&number, &shelve(&number).to_string()).await;
        self.roll_out(&number).await;
        number
    }

    /// The same with an image that the engine has, pushed and pulled for real.
    pub async fn real_version(&self, engine: &Engine, image: &str, profile: &Value) -> String {
        self.real_version_with(engine, image, json!({ "runtime_profile": profile })).await
    }

    /// The same, with more than a profile.
    pub async fn real_version_with(&self, engine: &Engine, image: &str, more: Value) -> String {
        let number = self.draft(more).await;
        let body = json!({ "app_slug": "hello", "app_version": number });
        let publisher = self.http.acting("publisher");
        let intent = publisher.post(&project("/app-artifacts/publish-intents"), body).await.with(201);
        let digest = self.push(engine, image, &intent, &number).await;
        self.register(&number, "runtime", &digest).await;
        self.roll_out(&number).await;
        number
    }

    /// A draft of the next version, with more than a profile where a story needs it.
    pub async fn draft(&self, more: Value) -> String {
        let number = format!("1.{}.0", self.versions.fetch_add(1, Ordering::Relaxed));
        let mut version = json!({ "version": number });
        for (name, value) in more.as_object().expect("fields of a version") {
            version[name] = value.clone();
        }
        let backend = more["runtime_profile"]["kind"].as_str().unwrap_or("launchable_oci");
        let app = json!({
            "slug": "hello", "display_name": "Hello", "category": "tests", "runtime_backend": backend,
        });
        let path = admin(&format!("/apps/manifests?owner_project_id={EXAMPLE}"));
        self.http.post(&path, json!({ "app": app, "version": version })).await.with(201);
        number
    }

    /// The version's artifact: intended, registered, verified and promoted.
    pub async fn artifact(&self, number: &str, digest: &str) -> Uuid {
        self.artifact_named(number, "runtime", digest).await
    }

    /// The same, where a version has several.
    pub async fn artifact_named(&self, number: &str, name: &str, digest: &str) -> Uuid {
        let body = json!({ "app_slug": "hello", "app_version": number, "artifact_name": name });
        let publisher = self.http.acting("publisher");
        publisher.post(&project("/app-artifacts/publish-intents"), body).await.with(201);
        self.register(number, name, digest).await
    }

    async fn register(&self, number: &str, name: &str, digest: &str) -> Uuid {
        let body =
            json!({ "app_slug": "hello", "app_version": number, "artifact_name": name, "digest": digest });
        let publisher = self.http.acting("publisher");
        let id = id_of(&publisher.post(&project("/app-artifacts"), body).await.with(201));
        let path = project(&format!("/app-artifacts/{id}/verify"));
        assert_eq!(publisher.post(&path, json!({})).await.with(200)["trust_state"], "verified");
        sqlx::query(
            "update app_artifacts set lifecycle_state = 'promoted', channels = '{prod}' where id = $1",
        )
        .bind(id)
        .execute(&self.story.pool)
        .await
        .expect("a promotion");
        id
    }

    /// Active, and the project entitled.
    pub async fn roll_out(&self, number: &str) {
        acts(&self.http, "hello", number, "stage", json!({})).await;
        acts(&self.http, "hello", number, "canary", json!({ "percent": 100 })).await;
        acts(&self.http, "hello", number, "publish", json!({})).await;
        self.entitle(true).await;
    }

    pub async fn entitle(&self, enabled: bool) {
        let path = project("/apps/entitlements/hello");
        self.http.acting("project-admin").put(&path, json!({ "enabled": enabled })).await.with(200);
    }

    /// As a team pushes: with the intent's credential and Docker's own client. Answers the digest.
    pub async fn push(&self, engine: &Engine, image: &str, intent: &Value, tag: &str) -> String {
        let opened = super::wrapped::unwrap(&self.http, intent).await;
        let registry = intent["registry"].as_str().expect("a registry");
        let name = format!("{registry}/{}:{tag}", intent["repository"].as_str().expect("a repository"));
        engine.log_in(registry, &opened.0, &opened.1).expect("a login");
        engine.docker(&["tag", image, &name]).expect("a tag");
        engine.docker(&["push", "--quiet", &name]).expect("a push");
        let format = "{{index .RepoDigests 0}}";
        let pushed = engine.docker(&["inspect", "--format", format, &name]).expect("a digest");
        // What was pushed is pulled again by whoever runs it: nothing of it stays here.
        engine.docker(&["rmi", "--force", &name, &pushed]).expect("a removal");
        pushed.rsplit('@').next().expect("a digest").to_owned()
    }

    pub async fn create(&self, body: Value) -> Answer {
        self.http.acting("operator").post(&project("/app-instances"), body).await
    }

    /// An instance of the version on the allocation, and the run that deploys it.
    pub async fn deploy_version(&self, allocation: Uuid, number: &str, gpus: u32) -> (Uuid, Uuid) {
        let body = json!({
            "app_slug": "hello", "version": number, "display_name": "hello",
            "placement_intent": { "allocation_id": allocation }, "resources": { "gpu_count": gpus },
        });
        let made = self.create(body).await.with(202);
        (id_of(&made), id_of(&made["workflow"]))
    }

    /// The same, of a version made for it.
    pub async fn deploy(&self, allocation: Uuid, profile: &Value, gpus: u32) -> (Uuid, Uuid) {
        let number = self.version(profile).await;
        self.deploy_version(allocation, &number, gpus).await
    }

    /// The same, once it runs.
    pub async fn deployed(&self, allocation: Uuid, profile: &Value, gpus: u32) -> Uuid {
        let (id, run) = self.deploy(allocation, profile, gpus).await;
        self.succeeds(run).await;
        id
    }

    /// Asks for an action and waits for what becomes of it.
    pub async fn act(&self, id: Uuid, verb: &str, body: Value) -> Value {
        let path = project(&format!("/app-instances/{id}/{verb}?wait=60s"));
        let answer = self.http.acting("operator").post(&path, body).await;
        if answer.status.as_u16() == 202 {
            let run = id_of(&answer.body["workflow"]);
            panic!("{verb} does not come to an end: {}", self.story.describe(run).await);
        }
        answer.with(200)
    }

    pub async fn instance(&self, id: Uuid) -> Value {
        self.http.get(&project(&format!("/app-instances/{id}"))).await.with(200)
    }

    /// Where the instance is reached.
    pub async fn url(&self, id: Uuid) -> String {
        let access = self.http.get(&project(&format!("/app-instances/{id}/access"))).await.with(200);
        access["endpoints"][0]["url"].as_str().expect("an endpoint").to_owned()
    }

    /// Asks for the end and waits for it. Answers the run.
    pub async fn decommission(&self, id: Uuid) -> Value {
        self.act(id, "decommission", json!({})).await
    }

    /// What instances hold, as `kind quantity`.
    pub async fn held(&self, id: Uuid) -> Vec<String> {
        sqlx::query_scalar(
            "select format('%s %s', kind, sum(quantity)) from resource_ledger where instance_id = $1
             group by kind, resource having sum(quantity) <> 0 order by kind",
        )
        .bind(id)
        .fetch_all(&self.story.pool)
        .await
        .expect("the ledger")
    }

    /// What nodes were asked for an instance's sake, in order.
    pub async fn tasks(&self, id: Uuid) -> Vec<String> {
        let asked = "select kind from node_tasks where instance_id = $1 order by id";
        sqlx::query_scalar(asked).bind(id).fetch_all(&self.story.pool).await.unwrap()
    }

    /// The types of an instance's events, in order.
    pub async fn events(&self, id: Uuid) -> Vec<String> {
        sqlx::query_scalar(
            "select replace(type, 'apps.instance.', '') from outbox where subject = $1 order by id",
        )
        .bind(id.to_string())
        .fetch_all(&self.story.pool)
        .await
        .expect("the outbox")
    }

    pub async fn succeeds(&self, run: Uuid) {
        let state = self.story.ends(run).await;
        assert_eq!(state, RunState::Succeeded, "{}", self.story.describe(run).await);
    }

    pub async fn end(self) {
        if let Some(workers) = self.workers {
            workers.stop().await;
        }
        drop(self.door);
        drop(self.registry);
        self.story.end().await;
    }
}

pub fn id_of(made: &Value) -> Uuid {
    made["id"].as_str().expect("an id").parse().expect("a uuid")
}

/// One port, asked over HTTP.
pub fn profile(port: u16, grace_seconds: u32) -> Value {
    json!({
        "kind": "launchable_oci", "ports": [{ "container": port }], "read_only_root": true,
        "health": { "kind": "http", "path": "/index.html", "interval_seconds": 1, "timeout_seconds": 1,
                    "grace_seconds": grace_seconds },
    })
}
