//! A platform on which something can be used: a node, an allocation on it, an app that counts tokens and an instance of it
//! that runs. The clock stands at a full hour, so that windows begin where stories expect them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use engine::{Start, Workflow};
use serde_json::{Value, json};
use store::app_instances::{self, NewAppInstance};
use uuid::Uuid;

use crate::http::{Answer, admin, project};
use crate::support::node::Node;
use crate::support::platform::{Platform, id_of};
use crate::support::realm::{DEMO, EXAMPLE};

pub struct Office {
    pub platform: Platform,
    pub node: Node,
    pub allocation: Uuid,
    pub instance: Uuid,
    beats: AtomicI64,
}

impl Office {
    pub async fn open() -> Office {
        let platform = Platform::new().await;
        let now = store_now(&platform).await;
        let to_the_hour = 3600 - now.timestamp().rem_euclid(3600);
        let rest = Duration::from_secs(to_the_hour.unsigned_abs())
            - Duration::from_nanos(now.timestamp_subsec_nanos().into());
        platform.story.advance(rest).await;
        let node = Node::enrol(&platform.http, "gpu-1").await;
        let share = json!({
            "project_id": EXAMPLE, "node_id": node.id, "capacity_shape": "gpu_slice", "gpu_count": 4, "cpu_cores": 8,
            "memory_gib": 64,
        });
        let allocation = id_of(&platform.http.post(&admin("/allocations"), share).await.with(201));
        let path = admin(&format!("/apps/manifests?owner_project_id={EXAMPLE}"));
        platform.http.post(&path, manifest("writer", json!({ "kind": "tokens" }))).await.with(201);
        let office =
            Office { platform, node, allocation, instance: Uuid::now_v7(), beats: AtomicI64::new(0) };
        office.settle(office.instance, "writer").await;
        office
    }

    /// An instance of the app that runs, with two GPUs.
    pub async fn settle(&self, id: Uuid, slug: &str) {
        let new = NewAppInstance {
            id,
            org_id: DEMO,
            project_id: EXAMPLE,
            app_slug: slug,
            version: "1.0.0",
            display_name: slug,
            operating_mode: "tenant_dedicated",
            control_plane_scope: "project",
            runtime_backend: "launchable_oci",
            allocation_id: Some(self.allocation),
            placement_intent: &json!({}),
            config: &json!({}),
            asked_config: &json!({}),
            resources: &json!({ "gpu_count": 2, "cpu_cores": 1, "memory_gib": 1, "host_port": null }),
            variant: None,
            packages: &json!([]),
            credentials: &json!({}),
            correlation_id: "c-office",
            created_by: Uuid::nil(),
        };
        let mut conn = self.platform.story.pool.acquire().await.unwrap();
        app_instances::insert(&mut conn, &new).await.unwrap();
        sqlx::query("update app_instances set status = 'running' where id = $1")
            .bind(id)
            .execute(&mut *conn)
            .await
            .unwrap();
    }

    pub async fn now(&self) -> DateTime<Utc> {
        store_now(&self.platform).await
    }

    pub async fn later(&self, seconds: u64) {
        self.platform.story.advance(Duration::from_secs(seconds)).await;
    }

    /// The node reports that the instance runs, or that nothing does.
    pub async fn beat(&self, running: bool) {
        let workloads = if running { json!([self.workload()]) } else { json!([]) };
        let number = self.beats.fetch_add(1, Ordering::Relaxed) + 1;
        self.node.beats(number, workloads).await.with(200);
    }

    fn workload(&self) -> Value {
        json!({
            "instance_id": self.instance, "member": "main", "generation": 1, "state": "running", "health": "healthy",
            "usage": { "cpu_milliseconds": 1, "memory_bytes": 1 },
        })
    }

    /// An event of the app, told as of now.
    pub async fn event(&self, id: &str, quantity: i64) -> Value {
        self.event_at(id, quantity, self.now().await)
    }

    pub fn event_at(&self, id: &str, quantity: i64, time: DateTime<Utc>) -> Value {
        json!({
            "specversion": "1.0", "type": "app.usage", "source": "/apps/writer", "id": id, "time": time,
            "subject": self.instance, "data": { "usage_unit": "tokens", "quantity": quantity },
        })
    }

    pub async fn tell(&self, events: &[Value]) -> Answer {
        self.platform.http.acting("project-admin").post(&project("/usage-events"), json!(events)).await
    }

    /// The verdicts, each with its reason up to the colon.
    pub async fn verdicts(&self, events: &[Value]) -> Vec<String> {
        let told = self.tell(events).await.with(200);
        let results = told["results"].as_array().unwrap().iter();
        results
            .map(|result| {
                let reason = result["reason"].as_str().unwrap_or_default();
                let words = [result["verdict"].as_str().unwrap(), reason.split(':').next().unwrap()];
                words.join(" ").trim_end().to_owned()
            })
            .collect()
    }

    /// What the usage API answers the project's viewer.
    pub async fn usage(&self, query: &str) -> Value {
        let path = format!("/api/v1/billing/usage?project_id={EXAMPLE}{query}");
        self.platform.http.acting("viewer").get(&path).await.with(200)
    }

    /// Unit and quantity of every record, as they were told.
    pub async fn records(&self, query: &str) -> Vec<(String, i64)> {
        let page = self.usage(query).await;
        let items = page["items"].as_array().unwrap().iter();
        items
            .map(|one| (one["usage_unit"].as_str().unwrap().to_owned(), one["quantity"].as_i64().unwrap()))
            .collect()
    }

    /// Runs something that runs by the clock, now.
    pub async fn run<W: Workflow>(&self, workflow: &W) {
        let story = &self.platform.story;
        let options = Start { correlation_id: "c-clock".into(), ..Start::default() };
        let run = story.start_workflow(workflow, options).await.expect("a start");
        self.platform.succeeds(run.id).await;
    }

    pub async fn close(self) {
        self.platform.end().await;
    }
}

async fn store_now(platform: &Platform) -> DateTime<Utc> {
    sqlx::query_scalar("select engine.now()").fetch_one(&platform.story.pool).await.unwrap()
}

/// An app whose instances are counted in this way.
pub fn manifest(slug: &str, metering: Value) -> Value {
    json!({
        "app": {
            "slug": slug, "display_name": slug, "category": "tests", "runtime_backend": "launchable_oci",
        },
        "version": {
            "version": "1.0.0", "metering": metering,
            "runtime_profile": { "kind": "launchable_oci", "ports": [{ "container": 8080 }] },
        },
    })
}
