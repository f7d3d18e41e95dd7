//! The events of every lifecycle, as the ordered list that the project is told: nothing more, nothing less, no gaps.

use agent::{Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use serde_json::{Value, json};
use uuid::Uuid;
use workflows::sequencer::number_all;

use crate::http::project;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};

/// What was told of an instance, as `type`, or `type of operation` where something failed.
async fn told(platform: &Platform, id: Uuid) -> Vec<String> {
    number_all(platform.story.engine.pool()).await.unwrap();
    let page = platform.http.get(&project(&format!("/events?limit=200&subject={id}"))).await.with(200);
    let name = |event: &Value| {
        let kind = event["type"].as_str().unwrap().replace("apps.instance.", "");
        match kind.as_str() {
            "failed" => format!(
                "failed {} {}",
                event["data"]["operation"].as_str().unwrap(),
                event["data"]["status"].as_str().unwrap()
            ),
            _ => kind,
        }
    };
    page["items"].as_array().unwrap().iter().map(name).collect()
}

/// Of the public form of an instance, what events tell.
const TOLD: [&str; 18] = [
    "id",
    "org_id",
    "project_id",
    "app_slug",
    "version",
    "target_version",
    "display_name",
    "status",
    "operating_mode",
    "control_plane_scope",
    "runtime_backend",
    "tenant_boundary_mode",
    "resources",
    "operator_service_account_id",
    "last_operation",
    "correlation_id",
    "created_at",
    "activated_at",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_of_an_instance_is_what_reading_it_shows() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let version = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &version, 1).await;
    platform.succeeds(run).await;
    number_all(platform.story.engine.pool()).await.unwrap();
    let path = project(&format!("/events?subject={id}&type=apps.instance.running"));
    let page = platform.http.get(&path).await.with(200);
    let data = page["items"][0]["data"].as_object().unwrap();
    let shown = platform.http.get(&project(&format!("/app-instances/{id}"))).await.with(200);
    for field in TOLD {
        assert_eq!(data.get(field), shown.get(field), "{field}");
    }
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_lifecycle_is_told_as_the_contract_says() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (old, new) = (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let to = |number: &str| json!({ "target_version": number });

    let (id, run) = platform.deploy_version(allocation, &old, 1).await;
    platform.succeeds(run).await;
    platform.act(id, "upgrade", to(&new)).await;
    platform.act(id, "rollback", json!({})).await;
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    platform.act(id, "upgrade", to(&new)).await;
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    platform.act(id, "rollback", to(&new)).await;
    platform.decommission(id).await;
    platform.decommission(id).await;
    assert_eq!(
        told(&platform, id).await,
        [
            "requested",
            "deploying",
            "running",
            "upgrade_requested",
            "upgraded",
            "rollback_requested",
            "rolled_back",
            "upgrade_requested",
            "failed upgrade running",
            "rollback_requested",
            "failed rollback running",
            "decommission_requested",
            "decommissioned",
        ]
    );

    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let (broken, run) = platform.deploy_version(allocation, &old, 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    platform.act(broken, "retry", json!({})).await;
    assert_eq!(
        told(&platform, broken).await,
        ["requested", "deploying", "failed deploy failed", "deploying", "running"]
    );

    // The node cannot remove it: that is told, and so is that it went when it was asked again.
    driver.will_keep(5);
    let path = project(&format!("/app-instances/{broken}/decommission"));
    let end = id_of(&platform.http.post(&path, json!({})).await.with(202)["workflow"]);
    assert_eq!(platform.story.settles(end).await, RunState::Paused);
    platform.http.post(&project(&format!("/workflows/{end}/retry")), json!({})).await.with(202);
    platform.succeeds(end).await;
    assert_eq!(
        told(&platform, broken).await[5..],
        ["decommission_requested", "failed decommission decommissioning", "decommissioned"]
    );

    // It takes the place of a deployment that hangs, which then tells nothing more.
    driver.will(SimulatedFault::Hang);
    let (hanging, run) = platform.deploy_version(allocation, &old, 1).await;
    platform.story.until(run, &[RunState::Waiting]).await;
    let path = project(&format!("/app-instances/{hanging}/decommission"));
    platform.http.post(&path, json!({})).await.with(202);
    driver.release(1);
    platform.decommission(hanging).await;
    assert_eq!(platform.story.ends(run).await, RunState::Cancelled);
    assert_eq!(
        told(&platform, hanging).await,
        ["requested", "deploying", "decommission_requested", "decommissioned"]
    );

    let all: Vec<i64> = sqlx::query_scalar("select seq from outbox where project_id = $1 order by seq")
        .bind(crate::support::realm::EXAMPLE)
        .fetch_all(&platform.story.pool)
        .await
        .unwrap();
    assert_eq!(all, (1..=all.len() as i64).collect::<Vec<_>>(), "no gaps");
    agent.end().await;
    platform.end().await;
}
