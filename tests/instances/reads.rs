//! Asking about instances: what an action would do, what was told, which runs acted, what is left.

use agent::{Simulated, SimulatedFault};
use domain::StatusReason;
use engine::RunState;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::http::{admin, project};
use crate::support::docker::PORT;
use crate::support::platform::{Platform, profile};

fn names(plan: &Value) -> Vec<&str> {
    plan["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect()
}

async fn instances(platform: &Platform) -> i64 {
    sqlx::query_scalar("select count(*) from app_instances").fetch_one(&platform.story.pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_what_would_happen_and_does_nothing() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 1).await;
    let (old, new) = (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let viewer = platform.http.acting("viewer");
    let asked = json!({
        "app_slug": "hello", "version": old, "display_name": "hello", "resources": { "gpu_count": 1 },
    });
    let plan = viewer.post(&project("/app-instances/plan"), asked.clone()).await.with(200);
    assert_eq!((&plan["action"], &plan["workflow_kind"]), (&json!("deploy"), &json!("instance.deploy")));
    assert!(names(&plan).contains(&"reserve_placement") && names(&plan).contains(&"mark_running"));
    assert!(plan["steps"].as_array().unwrap().iter().all(|step| step["touches"] != ""));
    assert_eq!(plan["expected_seconds"], json!(null), "nobody has done it yet");
    assert_eq!(plan["placement"][0]["fits"], true);
    assert_eq!(plan["effective"]["allocation_id"], json!(allocation));
    assert_eq!(plan["effective"]["resources"]["gpu_count"], 1);
    assert_eq!(instances(&platform).await, 0, "nothing was done");
    let (id, run) = platform.deploy_version(allocation, &old, 1).await;
    platform.succeeds(run).await;
    let again = viewer.post(&project("/app-instances/plan"), asked).await.with(422);
    assert_eq!(again["code"], "placement_unsatisfiable", "what the action would refuse, the plan refuses");
    let path = project(&format!("/app-instances/{id}/plan"));
    let upgrade = json!({ "action": "upgrade", "target_version": new });
    let plan = viewer.post(&path, upgrade).await.with(200);
    assert_eq!(plan["strategy"], "stop_then_start", "one GPU carries one at a time");
    assert!(plan["expected_seconds"].as_f64().is_some(), "by what nodes took before: {plan:#}");
    assert_eq!(plan["effective"]["version"], json!(new));
    let same = json!({ "action": "upgrade", "target_version": old });
    let same = viewer.post(&path, same).await.with(200);
    assert_eq!((&same["changes_nothing"], &same["expected_seconds"]), (&json!(true), &json!(null)));
    viewer.post(&path, json!({ "action": "upgrade" })).await.with(400);
    viewer.post(&path, json!({ "action": "rollback" })).await.with(409);
    let plan = viewer.post(&path, json!({ "action": "decommission" })).await.with(200);
    assert!(names(&plan).contains(&"sign_receipt"));
    let after = platform.instance(id).await;
    assert_eq!((&after["status"], &after["version"]), (&json!("running"), &json!(old)));
    agent.end().await;
    platform.end().await;
}

/// A plan that promises what the action refuses would be worth nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_refused_where_the_action_is() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::Hang);
    let next = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.story.until(run, &[RunState::Waiting]).await;
    let operator = platform.http.acting("operator");
    let of = |what: &str| project(&format!("/app-instances/{id}/{what}"));
    let same = async |verb: &str, body: Value, status: u16| {
        let mut planned = body.clone();
        planned["action"] = json!(verb);
        let planned = operator.post(&of("plan"), planned).await.with(status);
        let refused = operator.post(&of(verb), body).await.with(status);
        assert_eq!(
            (&planned["code"], &planned["details"]),
            (&refused["code"], &refused["details"]),
            "{verb}"
        );
        planned["code"].clone()
    };
    let upgrade = json!({ "target_version": next });
    assert_eq!(same("upgrade", upgrade.clone(), 409).await, "operation_in_progress");
    operator.post(&of("plan"), json!({ "action": "decommission" })).await.with(200);
    driver.release(1);
    platform.succeeds(run).await;
    operator.post(&of("plan"), json!({ "action": "upgrade", "target_version": next })).await.with(200);
    platform.decommission(id).await;
    assert_eq!(same("upgrade", upgrade, 409).await, "state_conflict");
    operator.post(&of("plan"), json!({ "action": "decommission" })).await.with(200);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_tells_its_story_its_runs_and_its_parts() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.succeeds(run).await;
    workflows::sequencer::number_all(platform.story.engine.pool()).await.unwrap();
    let of = |what: &str| project(&format!("/app-instances/{id}/{what}"));
    let first = platform.http.get(&of("events?limit=2")).await.with(200);
    let types = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|event| event["type"].as_str().unwrap().replace("apps.instance.", "")).collect()
    };
    assert_eq!(types(&first), ["requested", "deploying"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = platform.http.get(&of(&format!("events?limit=2&cursor={cursor}"))).await.with(200);
    assert_eq!((types(&rest), &rest["next_cursor"]), (vec!["running".to_owned()], &json!(null)));
    let runs = platform.http.get(&of("operations")).await.ids();
    assert_eq!(runs, [run]);
    platform
        .story
        .until_true(
            "the node has reported",
            "select exists (select from nodes where report -> 'workloads' @> jsonb_build_array(
                 jsonb_build_object('instance_id', $1::uuid))) and $2::text[] is not null",
            id,
            &[],
        )
        .await;
    let members = platform.http.get(&of("members")).await.with(200);
    let member = &members["items"][0];
    assert_eq!((&member["component_key"], &member["status"]), (&json!("main"), &json!("running")));
    agent.end().await;
    platform.end().await;
}

async fn give_back(conn: &mut PgConnection, instance: Uuid) {
    sqlx::query(
        "insert into resource_ledger (id, org_id, project_id, instance_id, kind, resource, quantity, run_id, correlation_id)
         select gen_random_uuid(), org_id, project_id, instance_id, kind, resource, -quantity, run_id, correlation_id
         from resource_ledger where instance_id = $1 and resource = 'node:x:30000'",
    )
    .bind(instance)
    .execute(conn)
    .await
    .unwrap();
}

/// What nodes were seen to take for a step counts only where the step happens.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_counts_the_time_of_a_stop_only_where_something_is_stopped() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 1).await;
    let (old, new) = (platform.version(&profile(PORT, 30)).await, platform.version(&profile(PORT, 30)).await);
    let next = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &old, 1).await;
    platform.succeeds(run).await;
    platform.act(id, "upgrade", json!({ "target_version": new })).await;
    let plan = async |id: Uuid| {
        let path = project(&format!("/app-instances/{id}/plan"));
        let plan = platform.http.post(&path, json!({ "action": "upgrade", "target_version": next })).await;
        let plan = plan.with(200);
        let steps = plan["steps"].as_array().unwrap();
        let stop = steps.iter().find(|step| step["name"] == "workload_stopped").unwrap();
        (plan["strategy"].clone(), stop["expected_seconds"].is_number())
    };
    assert_eq!(plan(id).await, (json!("stop_then_start"), true));
    let (beside, run) = platform.deploy_version(allocation, &new, 0).await;
    platform.succeeds(run).await;
    assert_eq!(plan(beside).await, (json!("side_by_side"), false));
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_given_back_is_listed_and_a_clean_failure_is_not() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let (id, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Compensated);
    let leaks = admin("/resource-ledger/leaks");
    assert_eq!(platform.http.get(&leaks).await.with(200)["items"], json!([]));
    assert_eq!(platform.http.get(&admin("/teardown-debts")).await.with(200)["items"], json!([]));
    sqlx::query(
        "insert into resource_ledger (id, org_id, project_id, instance_id, kind, resource, quantity, run_id, correlation_id)
         select gen_random_uuid(), org_id, project_id, id, 'port', 'node:x:30000', 1, id, 'c' from app_instances where id = $1",
    )
    .bind(id)
    .execute(&platform.story.pool)
    .await
    .unwrap();
    let shown = platform.http.get(&leaks).await.with(200);
    assert_eq!(shown["items"][0]["app_instance_id"], json!(id));
    assert_eq!(shown["items"][0]["held"], json!(["1 port node:x:30000"]));
    let mut tx = platform.story.pool.begin().await.unwrap();
    let broken = store::promises::check(&mut tx, None).await.unwrap();
    let said: Vec<(&str, Uuid)> = broken.iter().map(|one| (one.promise.as_str(), one.subject)).collect();
    assert_eq!(said, [("P8", id)], "{broken:#?}");
    give_back(&mut tx, id).await;
    tx.commit().await.unwrap();
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_instances_are_read_first_by_whoever_asks_for_them() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 3).await;
    let version = platform.version(&profile(PORT, 30)).await;
    let mut made = Vec::new();
    for _ in 0..3 {
        let (id, run) = platform.deploy_version(allocation, &version, 1).await;
        platform.succeeds(run).await;
        made.push(id);
    }
    let newest = project("/app-instances?order=newest&status=running&limit=2");
    assert_eq!(platform.http.get(&project("/app-instances")).await.ids(), made);
    assert_eq!(platform.http.get(&newest).await.ids(), [made[2], made[1]]);
    let page = platform.http.get(&newest).await.with(200);
    let cursor = page["next_cursor"].as_str().unwrap();
    assert_eq!(platform.http.get(&format!("{newest}&cursor={cursor}")).await.ids(), [made[0]]);
    platform.http.get(&project(&format!("/app-instances?cursor={cursor}"))).await.with(400);
    agent.end().await;
    platform.end().await;
}
