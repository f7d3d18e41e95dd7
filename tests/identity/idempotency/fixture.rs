//! For every operation that changes something, a request that succeeds: what it needs is made afresh each time. A route
//! that is missing here fails the stories that ask for it. It is long because it is one table with a row per operation: taken
//! apart, nobody would see which one is missing.

use std::sync::atomic::{AtomicU32, Ordering};

use axum::http::Method;
use engine::{Missed, Overlap, RunState, Schedule};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::artifacts::signer;
use crate::catalog::{manifest, register};
use crate::http::{Http, admin, organization, project};
use crate::support::realm::{self, DEMO};
use crate::support::registry;
use crate::support::story::Story;
use crate::support::world::{Do, Script, Trouble, touch};

const HOUR: u64 = 3_600_000;

pub struct Ask {
    pub method: Method,
    pub path: String,
    pub body: Value,
}

pub struct Fixtures<'a> {
    story: &'a Story,
    http: &'a Http,
    made: AtomicU32,
}

fn ask(method: Method, path: String, body: Value) -> Ask {
    Ask { method, path, body }
}

impl<'a> Fixtures<'a> {
    pub async fn new(story: &'a Story, http: &'a Http) -> Fixtures<'a> {
        let yearly =
            Schedule { name: "yearly", cron: "0 0 0 1 1 *", missed: Missed::Skip, overlap: Overlap::Queue };
        let mut conn = story.pool.acquire().await.unwrap();
        story.engine.ensure_schedule(&mut conn, &yearly, &Script { does: vec![touch("a")] }).await.unwrap();
        Fixtures { story, http, made: AtomicU32::new(0) }
    }

    pub async fn ask(&self, operation: &str) -> Ask {
        let fresh = self.fresh();
        match operation.split_once('_').expect("a place and a name") {
            ("admin", "create_organization") => {
                ask(Method::POST, admin("/organizations"), json!({ "slug": fresh }))
            }
            ("admin", "update_organization") => {
                let path = admin(&format!("/organizations/{DEMO}"));
                ask(Method::PATCH, path, json!({ "display_name": fresh }))
            }
            ("admin", "create_project") => {
                ask(Method::POST, admin("/projects"), json!({ "org_id": DEMO, "slug": fresh }))
            }
            ("admin", "update_project") => {
                let path = admin(&format!("/projects/{}", realm::EXAMPLE));
                ask(Method::PATCH, path, json!({ "display_name": fresh }))
            }
            ("admin", "set_policy") => {
                let path = format!("/policies/project/{}/canary.min_samples", self.project().await);
                ask(Method::PUT, admin(&path), json!({ "value": 30 }))
            }
            ("organization", name) if name.ends_with("_role") => self.role(name, fresh).await,
            ("organization", name) => self.member(name, organization, fresh).await,
            ("project", name) if name.ends_with("_member") => self.member(name, project, fresh).await,
            ("project", name) if name.ends_with("_access_credential") => self.credential(name, fresh).await,
            ("project", name) if name.contains("service_account") => self.machine(name, fresh).await,
            ("project", "create_publish_intent") => {
                register(self.http, &fresh, "1.0.0").await;
                let body = json!({ "app_slug": fresh, "app_version": "1.0.0" });
                ask(Method::POST, project("/app-artifacts/publish-intents"), body)
            }
            ("admin", "create_platform_release") => {
                let artifact = self.verified(fresh.clone()).await;
                let body =
                    json!({ "version": fresh, "artifacts": [{ "name": "cli", "artifact_id": artifact }] });
                ask(Method::POST, admin("/platform/releases"), body)
            }
            ("create", "platform_pull_intent") => {
                let artifact = self.verified(fresh.clone()).await;
                let body =
                    json!({ "version": fresh, "artifacts": [{ "name": "cli", "artifact_id": artifact }] });
                self.make(&admin("/platform/releases"), body).await;
                let path = format!("/api/v1/platform/releases/{fresh}/artifacts/cli/pull-intents");
                ask(Method::POST, path, json!({}))
            }
            ("admin", "create_price") => {
                let body = json!({
                    "usage_source": "app_runtime", "usage_unit": "tokens", "model": "flat", "amount_minor": 1,
                    "currency": "EUR",
                });
                ask(Method::POST, admin("/prices"), body)
            }
            ("admin", "create_credit") => {
                let path = admin(&format!("/projects/{}/credits", realm::EXAMPLE));
                ask(Method::POST, path, json!({ "amount_minor": 100, "currency": "EUR" }))
            }
            ("project", "set_budget") => {
                ask(Method::PUT, project("/budget"), json!({ "amount_minor": 100, "action": "warn" }))
            }
            ("project", "report_usage") => {
                // Of no instance, so it is refused; but the batch was taken.
                let event = json!({
                    "type": "app.usage", "source": "/tests", "id": fresh, "time": "2026-01-01T00:00:00Z",
                    "subject": Uuid::now_v7(), "data": { "usage_unit": "tokens", "quantity": 1 },
                });
                ask(Method::POST, project("/usage-events"), json!([event]))
            }
            ("project", name) if name.ends_with("_signing_key") => self.signing_key(name, fresh).await,
            ("project", name) if name.ends_with("_artifact") || name == "create_pull_intent" => {
                self.artifact(name, fresh).await
            }
            ("project", name) if name.contains("webhook") => self.webhook(name).await,
            ("project", name) if name.ends_with("_trust") => self.trust(name, fresh).await,
            ("project", "create_app_instance") => {
                self.deployable(&fresh).await;
                let body = json!({ "app_slug": fresh, "version": "1.0.0", "display_name": "Hello" });
                ask(Method::POST, project("/app-instances"), body)
            }
            ("project", name) if name.ends_with("_app_instance") => self.instance(name, fresh).await,
            ("project", name) if name.ends_with("_workflow") => self.run(name, project).await,
            ("admin", name) if name.ends_with("_node") => self.node(name, fresh).await,
            ("admin", name) if name.ends_with("_allocation") => self.allocation(name, fresh).await,
            ("admin", name) if name.ends_with("_workflow") => self.run(name, admin).await,
            ("admin", "bulk_retry_workflows") => {
                let run = self.paused().await;
                ask(Method::POST, admin("/workflows/bulk-retry"), json!({ "ids": [run] }))
            }
            ("admin", name) if name.ends_with("_schedule") => {
                let verb = name.trim_end_matches("_schedule");
                ask(Method::POST, admin(&format!("/schedules/yearly/{verb}")), json!({ "reason": fresh }))
            }
            ("admin", "register_manifest") => {
                let path = format!("/apps/manifests?owner_project_id={}", realm::EXAMPLE);
                ask(Method::POST, admin(&path), manifest(&fresh, "1.0.0"))
            }
            ("project", "submit_manifest") => {
                ask(Method::POST, project("/apps/manifests"), manifest(&fresh, "1.0.0"))
            }
            ("admin", name) if name.ends_with("_submission") => {
                let sent = self.make(&project("/apps/manifests"), manifest(&fresh, "1.0.0")).await;
                let verb = name.trim_end_matches("_submission");
                let path = admin(&format!("/apps/submissions/{sent}/{verb}"));
                ask(Method::POST, path, json!({ "reason": "because" }))
            }
            ("admin", name) if name.ends_with("_version") => self.version(name, fresh).await,
            ("project", "set_entitlement") => {
                register(self.http, &fresh, "1.0.0").await;
                let path = project(&format!("/apps/entitlements/{fresh}"));
                ask(Method::PUT, path, json!({ "enabled": true }))
            }
            _ => panic!("{operation} has no fixture: say here how to ask for it so that it succeeds"),
        }
    }

    /// Ends what the runs of the fixtures left waiting.
    pub async fn end(self) {
        self.story.quiet().await;
    }

    fn fresh(&self) -> String {
        format!("thing-{}", self.made.fetch_add(1, Ordering::Relaxed))
    }

    async fn make(&self, path: &str, body: Value) -> String {
        let made = self.http.post(path, body).await.with(201);
        made["id"].as_str().unwrap().to_owned()
    }

    async fn project(&self) -> String {
        self.make(&admin("/projects"), json!({ "org_id": DEMO, "slug": self.fresh() })).await
    }

    async fn role(&self, name: &str, fresh: String) -> Ask {
        let body = json!({ "name": fresh, "permissions": ["workflows.read"] });
        if name == "create_role" {
            return ask(Method::POST, organization("/roles"), body);
        }
        let path = organization(&format!("/roles/{}", self.make(&organization("/roles"), body).await));
        match name {
            "update_role" => ask(Method::PATCH, path, json!({ "permissions": ["audit.read"] })),
            _ => ask(Method::DELETE, path, json!({})),
        }
    }

    async fn member(&self, name: &str, place: fn(&str) -> String, fresh: String) -> Ask {
        realm::sign_in(&mut self.story.pool.acquire().await.unwrap(), &fresh).await;
        let body = json!({ "username": fresh, "role": "viewer" });
        if name == "add_member" {
            return ask(Method::POST, place("/members"), body);
        }
        let path = place(&format!("/members/{}", self.make(&place("/members"), body).await));
        match name {
            "update_member" => ask(Method::PATCH, path, json!({ "role": "admin" })),
            _ => ask(Method::DELETE, path, json!({})),
        }
    }

    async fn machine(&self, name: &str, fresh: String) -> Ask {
        let all = project("/service-accounts");
        if name == "create_service_account" {
            return ask(Method::POST, all, json!({ "name": fresh }));
        }
        let one = format!("{all}/{}", self.make(&all, json!({ "name": fresh })).await);
        match name {
            "delete_service_account" => ask(Method::DELETE, one, json!({})),
            "rotate_service_account_key" => ask(Method::POST, format!("{one}/rotate-key"), json!({})),
            "disable_service_account" => ask(Method::POST, format!("{one}/disable"), json!({})),
            _ => ask(Method::POST, format!("{one}/enable"), json!({})),
        }
    }

    async fn trust(&self, name: &str, fresh: String) -> Ask {
        let all = project("/federated-trusts");
        let account = self.make(&project("/service-accounts"), json!({ "name": fresh })).await;
        let body = json!({
            "name": fresh, "service_account_id": account, "issuer": "https://ci.example", "audience": "gpuaas",
            "subject_pattern": "repo:acme/*",
        });
        if name == "create_federated_trust" {
            return ask(Method::POST, all, body);
        }
        ask(Method::DELETE, format!("{all}/{}", self.make(&all, body).await), json!({}))
    }

    async fn webhook(&self, name: &str) -> Ask {
        let all = project("/webhooks");
        let body = json!({ "url": "https://hooks.example.com/" });
        if name == "create_webhook" {
            return ask(Method::POST, all, body);
        }
        let one = format!("{all}/{}", self.make(&all, body).await);
        match name {
            "update_webhook" => ask(Method::PATCH, one, json!({ "status": "disabled" })),
            "delete_webhook" => ask(Method::DELETE, one, json!({})),
            "rotate_webhook_secret" => ask(Method::POST, format!("{one}/rotate-secret"), json!({})),
            _ => ask(Method::POST, format!("{one}/replay"), json!({})),
        }
    }

    async fn node(&self, name: &str, fresh: String) -> Ask {
        let all = admin("/nodes");
        if name == "create_node" {
            return ask(Method::POST, all, json!({ "name": fresh }));
        }
        let node = self.enrolled(&fresh).await;
        let verb = name.trim_end_matches("_node");
        let body = if verb == "update" { json!({ "version": self.program(fresh).await }) } else { json!({}) };
        ask(Method::POST, format!("{all}/{node}/{verb}"), body)
    }

    /// A release with a program for nodes: its version. Nobody comes for the bytes.
    async fn program(&self, fresh: String) -> String {
        let artifact: Uuid = self.verified(fresh.clone()).await.parse().unwrap();
        let blob = "update app_artifacts set artifact_kind = 'blob', repository = null, source_uri = 'artifact_store://x'
                    where id = $1";
        sqlx::query(blob).bind(artifact).execute(&self.story.pool).await.unwrap();
        let named = json!([{ "name": "gpuaas-linux-x86_64", "artifact_id": artifact }]);
        self.make(&admin("/platform/releases"), json!({ "version": fresh, "artifacts": named })).await;
        fresh
    }

    async fn allocation(&self, name: &str, fresh: String) -> Ask {
        let all = admin("/allocations");
        let node = self.enrolled(&fresh).await;
        let body = json!({ "project_id": realm::EXAMPLE, "node_id": node, "capacity_shape": "gpu_slice" });
        if name == "create_allocation" {
            return ask(Method::POST, all, body);
        }
        let one = self.make(&all, body).await;
        ask(Method::POST, format!("{all}/{one}/release"), json!({}))
    }

    async fn enrolled(&self, name: &str) -> Uuid {
        crate::support::node::Node::enrol(self.http, name).await.id
    }

    /// A version that is open, its image, an entitlement and a place: the allocation.
    async fn deployable(&self, slug: &str) -> Uuid {
        let made = register(self.http, slug, "1.0.0").await;
        let intent = json!({ "app_slug": slug, "app_version": "1.0.0" });
        self.make(&project("/app-artifacts/publish-intents"), intent).await;
        let body = json!({ "app_slug": slug, "app_version": "1.0.0", "digest": registry::shelve(slug) });
        let artifact = self.make(&project("/app-artifacts"), body).await;
        self.http.post(&project(&format!("/app-artifacts/{artifact}/verify")), json!({})).await.with(200);
        let version: Uuid = made["id"].as_str().unwrap().parse().unwrap();
        let mut conn = self.story.pool.acquire().await.unwrap();
        let version = store::app_versions::lock(&mut conn, version).await.unwrap().unwrap();
        store::version_artifacts::freeze(&mut conn, &version).await.unwrap();
        // Nobody did this, so nobody is told.
        sqlx::query(
            "update app_versions set status = 'active', registered_by = gen_random_uuid() where id = $1",
        )
        .bind(version.id)
        .execute(&mut *conn)
        .await
        .unwrap();
        let path = project(&format!("/apps/entitlements/{slug}"));
        self.http.put(&path, json!({ "enabled": true })).await.with(200);
        let node = self.enrolled(slug).await;
        let place = json!({
            "project_id": realm::EXAMPLE, "node_id": node, "capacity_shape": "gpu_slice", "cpu_cores": 4,
            "memory_gib": 8,
        });
        self.make(&admin("/allocations"), place).await.parse().unwrap()
    }

    /// One in a state from which the action is legal.
    async fn instance(&self, name: &str, slug: String) -> Ask {
        let (id, nothing) = (Uuid::now_v7(), json!({}));
        let allocation = self.deployable(&slug).await;
        let new = store::app_instances::NewAppInstance {
            id,
            org_id: DEMO,
            project_id: realm::EXAMPLE,
            app_slug: &slug,
            version: "1.0.0",
            display_name: "hello",
            operating_mode: "tenant_dedicated",
            control_plane_scope: "project",
            runtime_backend: "launchable_oci",
            allocation_id: Some(allocation),
            placement_intent: &nothing,
            config: &nothing,
            asked_config: &nothing,
            resources: &json!({ "gpu_count": 0, "cpu_cores": 1, "memory_gib": 1, "host_port": null }),
            variant: None,
            packages: &json!([]),
            credentials: &nothing,
            correlation_id: "c-fixture",
            created_by: Uuid::nil(),
        };
        let mut conn = self.story.pool.acquire().await.unwrap();
        store::app_instances::insert(&mut conn, &new).await.unwrap();
        let verb = name.trim_end_matches("_app_instance");
        let (status, during) =
            if verb == "retry" { ("failed", Some("deploying")) } else { ("running", None) };
        sqlx::query("update app_instances set status = $2, failed_during = $3 where id = $1")
            .bind(id)
            .bind(status)
            .bind(during)
            .execute(&mut *conn)
            .await
            .unwrap();
        let changes = matches!(verb, "upgrade" | "rollback");
        let body = if changes { json!({ "target_version": "1.0.0" }) } else { json!({}) };
        ask(Method::POST, project(&format!("/app-instances/{id}/{verb}")), body)
    }

    async fn credential(&self, name: &str, fresh: String) -> Ask {
        let all = project("/access-credentials");
        let body = json!({ "name": fresh, "value": "hunter2" });
        if name == "create_access_credential" {
            return ask(Method::POST, all, body);
        }
        let id = self.make(&all, body).await;
        let verb = name.trim_end_matches("_access_credential");
        let body = if verb == "rotate" { json!({ "value": "hunter3" }) } else { json!({}) };
        ask(Method::POST, format!("{all}/{id}/{verb}"), body)
    }

    async fn signing_key(&self, name: &str, fresh: String) -> Ask {
        let all = project("/signing-keys");
        let body = json!({ "name": fresh, "public_key_pem": signer::public_key_pem(1) });
        if name == "create_signing_key" {
            return ask(Method::POST, all, body);
        }
        ask(Method::POST, format!("{all}/{}/retire", self.make(&all, body).await), json!({}))
    }

    async fn artifact(&self, name: &str, fresh: String) -> Ask {
        register(self.http, &fresh, "1.0.0").await;
        let intent = json!({ "app_slug": fresh, "app_version": "1.0.0" });
        self.make(&project("/app-artifacts/publish-intents"), intent).await;
        let digest = registry::shelve(&fresh);
        let body = json!({ "app_slug": fresh, "app_version": "1.0.0", "digest": digest });
        let all = project("/app-artifacts");
        if name == "register_artifact" {
            return ask(Method::POST, all, body);
        }
        let id = self.make(&all, body).await;
        match name {
            "create_pull_intent" => {
                ask(Method::POST, format!("{all}/pull-intents"), json!({ "artifact_id": id }))
            }
            "promote_artifact" => {
                ask(Method::POST, format!("{all}/{id}/promote"), json!({ "channel": "dev" }))
            }
            _ => ask(Method::POST, format!("{all}/{id}/{}", name.trim_end_matches("_artifact")), json!({})),
        }
    }

    /// An artifact that a release may name.
    async fn verified(&self, fresh: String) -> String {
        let path = self.artifact("verify_artifact", fresh).await.path;
        let verified = self.http.post(&path, json!({})).await.with(200);
        verified["id"].as_str().unwrap().to_owned()
    }

    async fn run(&self, name: &str, place: fn(&str) -> String) -> Ask {
        let verb = name.trim_end_matches("_workflow");
        let run = match verb {
            "retry" | "resume" => self.paused().await,
            _ => self.waiting().await,
        };
        ask(Method::POST, place(&format!("/workflows/{run}/{verb}")), json!({}))
    }

    /// A version in a state from which the action is legal.
    async fn version(&self, name: &str, slug: String) -> Ask {
        let made = register(self.http, &slug, "1.0.0").await;
        let verb = name.trim_end_matches("_version");
        let (status, canary) = match verb {
            "canary" => ("staged", None),
            "publish" | "rollback" => ("canary", Some(json!({ "percent": 1, "project_ids": [] }))),
            "deprecate" => ("active", None),
            _ => ("draft", None),
        };
        // Nobody did this, so nobody is told.
        sqlx::query(
            "update app_versions set status = $2, canary = $3, registered_by = gen_random_uuid()
             where id = $1::text::uuid",
        )
        .bind(made["id"].as_str().unwrap())
        .bind(status)
        .bind(canary)
        .execute(&self.story.pool)
        .await
        .unwrap();
        let body = if verb == "canary" { json!({ "percent": 1 }) } else { json!({}) };
        ask(Method::POST, admin(&format!("/apps/catalog/{slug}/versions/1.0.0/{verb}")), body)
    }

    async fn waiting(&self) -> Uuid {
        let run = self.story.start([Do::Wait(HOUR)]).await;
        self.story.until(run, &[RunState::Waiting]).await;
        run
    }

    async fn paused(&self) -> Uuid {
        let step = self.fresh();
        self.story.world.trouble(&step, [Trouble::NeedsOperator]);
        let run = self.story.start([touch(&step)]).await;
        self.story.until(run, &[RunState::Paused]).await;
        run
    }
}
