//! What is known beforehand to be impossible is refused when it is asked about or asked for, and what serves goes on serving.

use agent::{Driver, Simulated};
use node_protocol::WorkloadState;
use serde_json::{Value, json};
use uuid::Uuid;

use super::stacks::stack;
use crate::http::project;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::registry::shelve;

async fn rolled_out(platform: &Platform, more: Value) -> String {
    let number = platform.draft(more).await;
    platform.artifact(&number, &shelve(&number).to_string()).await;
    platform.roll_out(&number).await;
    number
}

/// What the version is refused for, by the plan and by the action alike. Each problem lies at the version that was named.
async fn refused(platform: &Platform, id: Uuid, number: &str) -> Vec<String> {
    let operator = platform.http.acting("operator");
    let of = |what: &str| project(&format!("/app-instances/{id}/{what}"));
    let asked = json!({ "action": "upgrade", "target_version": number });
    let planned = operator.post(&of("plan"), asked).await.with(400);
    let refused = operator.post(&of("upgrade"), json!({ "target_version": number })).await.with(400);
    assert_eq!(planned["details"], refused["details"]);
    let problems = refused["details"]["errors"].as_array().unwrap();
    assert!(problems.iter().all(|one| one["pointer"] == "/target_version"), "{refused:#}");
    problems.iter().map(|one| one["message"].as_str().unwrap().to_owned()).collect()
}

/// A share that the server of the first version has to itself, two helpers of the second leave nothing of.
#[tokio::test(flavor = "multi_thread")]
async fn a_stack_that_cannot_be_rendered_stops_nothing_that_serves_on_a_full_allocation() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 1).await;
    let mut serving = stack();
    serving["smoke"] = json!([]);
    let mut crowded = serving.clone();
    let topology = &mut crowded["runtime_profile"]["topology"];
    topology["services"] =
        json!([{ "name": "server", "gpu": true }, { "name": "helper" }, { "name": "second-helper" }]);
    let (serving, crowded) = (rolled_out(&platform, serving).await, rolled_out(&platform, crowded).await);
    let (id, run) = platform.deploy_version(allocation, &serving, 1).await;
    platform.succeeds(run).await;
    let asked = platform.tasks(id).await;
    let told = refused(&platform, id, &crowded).await;
    let expected = ["resources/cpu_cores", "resources/memory_gib"]
        .map(|field| format!("the instance's {field} leaves nothing for the server"));
    assert_eq!(told, expected);
    let seen = driver.seen().await.unwrap();
    assert!(!seen.is_empty() && seen.iter().all(|one| one.state == WorkloadState::Running), "{seen:?}");
    assert_eq!(platform.tasks(id).await, asked, "nothing was asked of the node");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_that_a_version_does_not_take_are_not_dropped_in_silence() {
    let platform = Platform::new().await;
    let (agent, _) = platform.node("gpu-1", &Simulated::new(), 4).await;
    let installing = |own: Vec<String>| {
        let mut profile = profile(PORT, 30);
        profile["packages"] = json!(own);
        json!({ "runtime_profile": profile })
    };
    let some = rolled_out(&platform, installing(vec!["numpy".to_owned()])).await;
    let others = rolled_out(&platform, installing(vec!["scipy".to_owned()])).await;
    let many = (0..49).map(|number| format!("package-{number}")).collect();
    let many = rolled_out(&platform, installing(many)).await;
    let mut strict = json!({ "runtime_profile": profile(PORT, 30) });
    strict["config_schema"] = json!({
        "type": "object", "required": ["colour"], "properties": { "colour": { "type": "string" } },
    });
    let none = rolled_out(&platform, strict).await;
    let body = json!({
        "app_slug": "hello", "version": some, "display_name": "hello", "packages": ["pandas", "polars"],
    });
    let made = platform.create(body).await.with(202);
    platform.succeeds(id_of(&made["workflow"])).await;
    let id = id_of(&made);
    let told = refused(&platform, id, &none).await;
    assert_eq!(told.len(), 2, "what its config lacks is told too: {told:?}");
    assert!(told[0].starts_with("the instance's config/colour"), "{told:?}");
    assert_eq!(told[1], "the instance's list of packages is not taken: this version installs no packages");
    let told = refused(&platform, id, &many).await;
    assert_eq!(
        told,
        ["the instance's list of packages must have at most 1 packages beside the version's own"]
    );
    let upgraded = platform.act(id, "upgrade", json!({ "target_version": others })).await;
    assert_eq!(upgraded["workflow"]["status"], "succeeded", "{upgraded:#}");
    agent.end().await;
    platform.end().await;
}
