//! What a project may do is asked again with every change, and again by the run: what was taken away meanwhile is not used,
//! and what must be taken down can be.

use std::time::Duration;

use agent::{Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use serde_json::json;

use crate::http::project;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::registry::shelf_is_away;

#[tokio::test(flavor = "multi_thread")]
async fn without_an_entitlement_nothing_begins_and_everything_may_end() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (first, second) =
        (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let (id, run) = platform.deploy_version(allocation, &first, 1).await;
    platform.succeeds(run).await;
    let upgraded = platform.act(id, "upgrade", json!({ "target_version": second })).await;
    assert_eq!(upgraded["workflow"]["status"], "succeeded", "{upgraded:#}");
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let (failed, run) = platform.deploy_version(allocation, &first, 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);

    let offered = async |id| platform.instance(id).await["allowed_actions"].clone();
    assert_eq!(offered(id).await, json!(["upgrade", "rollback", "decommission"]));
    assert_eq!(offered(failed).await, json!(["retry", "decommission"]));
    platform.entitle(false).await;
    for id in [id, failed] {
        assert_eq!(offered(id).await, json!(["decommission"]), "nothing is offered that would be refused");
    }
    let operator = platform.http.acting("operator");
    for (id, verb, body) in [
        (id, "upgrade", json!({ "target_version": first })),
        (id, "rollback", json!({})),
        (failed, "retry", json!({})),
    ] {
        let refused = operator.post(&project(&format!("/app-instances/{id}/{verb}")), body).await.with(403);
        assert_eq!(refused["code"], "entitlement_required", "{verb}: {refused:#}");
    }
    assert_eq!(platform.instance(id).await["status"], "running", "what runs goes on");
    for id in [id, failed] {
        assert_eq!(platform.decommission(id).await["status"], "decommissioned");
    }
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_narrowed_since_holds_for_changes_and_retries_too() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 8).await;
    let (first, second) =
        (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let (id, run) = platform.deploy_version(allocation, &first, 2).await;
    platform.succeeds(run).await;
    let upgraded = platform.act(id, "upgrade", json!({ "target_version": second })).await;
    assert_eq!(upgraded["workflow"]["status"], "succeeded", "{upgraded:#}");
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let (failed, run) = platform.deploy_version(allocation, &first, 2).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);

    let narrow = json!({ "enabled": true, "policy_overrides": { "max_gpu_count": 1 } });
    platform.http.acting("project-admin").put(&project("/apps/entitlements/hello"), narrow).await.with(200);
    let operator = platform.http.acting("operator");
    for (id, verb, body) in [
        (id, "upgrade", json!({ "target_version": first })),
        (id, "rollback", json!({})),
        (failed, "retry", json!({})),
    ] {
        let refused = operator.post(&project(&format!("/app-instances/{id}/{verb}")), body).await.with(403);
        assert_eq!(
            (&refused["code"], &refused["details"]["reason"]),
            (&json!("policy_denied"), &json!("too_many_gpus")),
            "{verb}: {refused:#}"
        );
    }
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_waits_for_a_registry_that_is_away_and_says_so() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    shelf_is_away(true);
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    let tried = "select coalesce((select max(attempt) from engine.attempt where run_id = $1), 0) >= $2[1]::integer
                 and exists (select 1 from engine.run where id = $1 and state = 'waiting' and cause = 'backoff')";
    // Ten tries are more than a quarter of a minute.
    for attempt in ["1", "2", "3", "4", "5", "6", "7", "8", "9"] {
        platform.story.until_true("the run backs off", tried, run, &[attempt]).await;
        platform.story.advance(Duration::from_secs(61)).await;
    }
    platform.story.until_true("the run backs off once more", tried, run, &["10"]).await;
    let shown = platform.http.get(&project(&format!("/workflows/{run}"))).await.with(200);
    assert_eq!(shown["stuck_cause"]["code"], "backoff", "{shown:#}");
    let steps = shown["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == "resolve_artifacts").unwrap();
    assert_eq!(step["error"]["code"], "registry_unavailable");
    assert_eq!(platform.instance(id).await["status"], "deploying");
    shelf_is_away(false);
    platform.story.advance(Duration::from_secs(61)).await;
    platform.succeeds(run).await;
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_is_never_retired_under_an_instance_however_close_both_come() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 8).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let (mut began, mut refused) = (0, 0);
    for round in 0..6 {
        // Registered after the version was frozen, so only the instance that names it uses it.
        let digest = crate::support::registry::shelve(&format!("candidate {round}"));
        let artifact = platform.artifact(&number, digest.as_str()).await;
        let wanted = json!({
            "app_slug": "hello", "version": number, "display_name": "hello", "artifact_id": artifact,
            "placement_intent": { "allocation_id": allocation }, "resources": { "gpu_count": 1 },
        });
        let path = project(&format!("/app-artifacts/{artifact}"));
        let (retire, admin) = (format!("{path}/retire"), platform.http.acting("project-admin"));
        let (retired, created) =
            tokio::join!(admin.post(&retire, json!({ "when": "now" })), platform.create(wanted));
        let state = async || platform.http.get(&path).await.with(200)["lifecycle_state"].clone();
        if created.status == 202 {
            began += 1;
            let made = created.with(202);
            platform.story.ends(id_of(&made["workflow"])).await;
            assert_ne!(state().await, "retired", "an instance has it");
            assert_eq!(platform.decommission(id_of(&made)).await["status"], "decommissioned");
        } else {
            refused += 1;
            assert_eq!(created.with(422)["code"], "artifact_not_deployable");
        }
        if retired.status == 202 {
            let run = id_of(&retired.with(202)["workflow"]);
            let ended = "select lifecycle_state = 'retired' and $2::text[] is not null from app_artifacts where id = $1";
            for _ in 0..4 {
                platform.story.advance(Duration::from_secs(3601)).await;
            }
            platform.story.until_true("it is retired once nobody has it", ended, artifact, &[]).await;
            platform.story.ask("cancel", run).await.ok();
        } else {
            assert_eq!(retired.with(409)["code"], "version_in_use");
        }
    }
    assert_eq!(began + refused, 6);
    agent.end().await;
    platform.end().await;
}
