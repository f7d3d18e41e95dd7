//! What a project may do is asked again with every change, and again by the run: what was taken away meanwhile is not used,
//! and what must be taken down can be.

use std::time::Duration;

use agent::{Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use serde_json::json;

use crate::catalog::catalog;
use crate::http::{admin, project};
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
    let path = project(&format!("/app-instances/{failed}/upgrade"));
    let refused = operator.post(&path, json!({ "target_version": second })).await.with(409);
    assert_eq!(refused["details"]["allowed_actions"], json!(["decommission"]), "no refusal offers more");
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

/// What was asked of the race's loser is refused, by the request or by its run; the winner gets all of it.
#[tokio::test(flavor = "multi_thread")]
async fn of_a_version_that_ends_now_and_an_instance_that_begins_exactly_one_proceeds() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 8).await;
    for _ in 0..6 {
        let number = platform.version(&profile(PORT, 30)).await;
        let wanted = json!({
            "app_slug": "hello", "version": number, "display_name": "hello",
            "placement_intent": { "allocation_id": allocation }, "resources": { "gpu_count": 1 },
        });
        let path = admin(&format!("/apps/catalog/hello/versions/{number}/retire"));
        let (retired, created) =
            tokio::join!(platform.http.post(&path, json!({ "when": "now" })), platform.create(wanted));
        let ended = match retired.status.as_u16() {
            202 => platform.story.ends(id_of(&retired.with(202)["workflow"])).await == RunState::Succeeded,
            _ => {
                assert_eq!(retired.with(409)["code"], "version_in_use");
                false
            }
        };
        let shown = platform.http.get(&catalog(&format!("/hello/versions/{number}"))).await.with(200);
        let began = created.status == 202;
        assert!(began != ended, "{number}: began {began}, ended {ended}");
        if began {
            assert_eq!(shown["status"], "active", "whoever came too late changed nothing");
            let made = created.with(202);
            platform.succeeds(id_of(&made["workflow"])).await;
            assert_eq!(platform.decommission(id_of(&made)).await["status"], "decommissioned");
        } else {
            assert_eq!(shown["status"], "retired");
            assert_eq!(created.with(409)["code"], "state_conflict");
        }
    }
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_artifact_that_ends_now_and_an_instance_that_begins_exactly_one_proceeds() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 8).await;
    let number = platform.version(&profile(PORT, 30)).await;
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
        if retired.status == 202 {
            // The run goes on to keep the bytes for a while, so its end is not waited for.
            let decided = "select exists (select 1 from engine.run where id = $1 and state = 'failed')
                 or exists (select 1 from app_artifacts where id = $2[1]::uuid and lifecycle_state = 'retired')";
            let run = id_of(&retired.with(202)["workflow"]);
            let words = artifact.to_string();
            platform.story.until_true("the run has decided", decided, run, &[words.as_str()]).await;
        } else {
            assert_eq!(retired.with(409)["code"], "version_in_use");
        }
        let state = platform.http.get(&path).await.with(200)["lifecycle_state"].clone();
        let (began, ended) = (created.status == 202, state == "retired");
        assert!(began != ended, "round {round}: began {began}, ended {ended}");
        if began {
            assert_eq!(state, "promoted", "whoever came too late changed nothing");
            let made = created.with(202);
            platform.succeeds(id_of(&made["workflow"])).await;
            assert_eq!(platform.decommission(id_of(&made)).await["status"], "decommissioned");
        } else {
            assert_eq!(created.with(422)["code"], "artifact_not_deployable");
        }
    }
    agent.end().await;
    platform.end().await;
}
