//! The whole platform in a story: the API, the workers that drive instances, a door for agents, a node with an agent and
//! an allocation on it. Instances are put in as the API would decide them.

use std::sync::Arc;

use activities::{Env, TaskSigners};
use agent::Driver;
use engine::{RunState, Start, Workers};
use serde_json::{Value, json};
use store::app_instance_artifacts::{self, Standing, UsedArtifact};
use store::app_instance_releases::{self, Release};
use store::app_instances::{self, NewAppInstance};
use uuid::Uuid;
use workflows::instance::deploy::DeployInstance;
use workflows::instance::target;

use super::agent::{Door, RunningAgent};
use super::realm::{DEMO, EXAMPLE};
use super::story::{Story, quick};
use crate::http::{Http, admin, project};

pub struct Platform {
    pub story: Story,
    pub http: Http,
    pub door: Door,
    workers: Workers,
}

impl Platform {
    pub async fn new() -> Platform {
        let story = Story::idle(quick(), None).await;
        let http = Http::over(&story).await;
        let door = Door::open(&http).await;
        let signers = TaskSigners::new(http.realm.keys.sealer.clone());
        let env = Arc::new(Env::new(story.engine.clone()).with_signers(signers));
        let workers = Workers::start(&story.engine, env, workflows::registry());
        Platform { story, http, door, workers }
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

    /// An instance of one container with this image, and the run that deploys it.
    pub async fn deploy(&self, allocation: Uuid, digest: &str, profile: &Value, gpus: u32) -> (Uuid, Uuid) {
        let id = Uuid::now_v7();
        let resources = json!({ "gpu_count": gpus, "cpu_cores": 1, "memory_gib": 1, "host_port": null });
        let new = NewAppInstance {
            id,
            org_id: DEMO,
            project_id: EXAMPLE,
            app_slug: "hello",
            version: "1.0.0",
            display_name: "hello",
            operating_mode: "tenant_dedicated",
            control_plane_scope: "project",
            runtime_backend: "launchable_oci",
            allocation_id: Some(allocation),
            placement_intent: &json!({ "allocation_id": allocation }),
            config: &json!({}),
            resources: &resources,
            variant: None,
            packages: &json!([]),
            credentials: &json!({}),
            correlation_id: "c-deploy",
            created_by: Uuid::nil(),
        };
        let image = UsedArtifact {
            name: "runtime".into(),
            artifact_id: Uuid::now_v7(),
            digest: digest.to_owned(),
            repository: "gpuaas/apps/example/hello".into(),
        };
        let release = Release { version: "1.0.0".into(), generation: 1, profile: profile.clone() };
        let mut tx = self.story.pool.begin().await.expect("a transaction");
        app_instances::insert(&mut tx, &new).await.expect("an instance");
        app_instance_artifacts::set(&mut tx, id, Standing::Target, &[image]).await.expect("an image");
        app_instance_releases::set(&mut tx, id, Standing::Target, &release).await.expect("a release");
        let options = Start {
            project_id: EXAMPLE,
            org_id: Some(DEMO),
            correlation_id: "c-deploy".into(),
            target: Some(target(id)),
            ..Start::default()
        };
        let deploy = DeployInstance { instance: id, generation: 1 };
        let mut started = self.story.engine.start(&mut tx, &deploy, options).await.expect("a start");
        tx.commit().await.expect("a commit");
        started.begin();
        (id, started.id)
    }

    pub async fn instance(&self, id: Uuid) -> Value {
        self.http.get(&project(&format!("/app-instances/{id}"))).await.with(200)
    }

    /// Asks for the end and waits for it. Answers the run.
    pub async fn decommission(&self, id: Uuid) -> Value {
        let path = project(&format!("/app-instances/{id}/decommission?wait=60s"));
        self.http.post(&path, json!({})).await.with(200)
    }

    /// What instances hold, as `kind resource quantity`.
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
        self.workers.stop().await;
        drop(self.door);
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
