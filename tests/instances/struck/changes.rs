//! Upgrading, rolling back, giving an allocation back, watching nodes and bringing back what drifted survive being struck
//! anywhere, as deploying does.

use std::sync::Arc;

use activities::Env;
use engine::Engine;
use engine::testing::{Check, check_workflow};
use workflows::reconcilers::drift::WatchDrift;
use workflows::reconcilers::lost_nodes::WatchNodes;

use super::catalog::furnish;
use super::instance::begin_anew;
use super::is_struck_anywhere;
use super::scenes::{self, drifted, run};
use crate::lifecycle::wait_for;
use crate::support::database::TestDatabase;

#[tokio::test(flavor = "multi_thread")]
async fn upgrading_side_by_side_survives_being_struck_anywhere() {
    is_struck_anywhere(scenes::upgrading_side_by_side).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrading_by_stopping_first_survives_being_struck_anywhere() {
    is_struck_anywhere(scenes::upgrading_by_stopping_first).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upgrading_to_what_serves_already_survives_being_struck_anywhere() {
    is_struck_anywhere(scenes::upgrading_to_the_same).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rolling_back_survives_being_struck_anywhere() {
    is_struck_anywhere(scenes::rolling_back).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn releasing_an_allocation_survives_being_struck_anywhere() {
    is_struck_anywhere(scenes::releasing).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bringing_back_what_drifted_survives_being_struck_anywhere() {
    is_struck_anywhere(scenes::bringing_back).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn launching_again_what_is_gone_survives_being_struck_anywhere() {
    is_struck_anywhere(scenes::launching_again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_nodes_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: WatchNodes {},
        fresh_env: fallen_silent,
        leftovers: |_env| Vec::new(),
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    // Every time it fell silent at another moment.
    let (told, times): (i64, i64) = sqlx::query_as(
        "select count(*), count(distinct (project_id, data ->> 'last_seen_at')) from outbox where type = 'nodes.lost'",
    )
    .fetch_one(&database.pool())
    .await
    .unwrap();
    assert!(0 < told);
    assert_eq!(told, times, "each loss is told once to everybody whom it concerns");
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_for_drift_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: WatchDrift {},
        fresh_env: drifted,
        leftovers: |_env| Vec::new(),
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    let acting = "select count(*) from engine.run where kind = 'instance.reconcile' and finished_at is null";
    let acting: i64 = sqlx::query_scalar(acting).fetch_one(&database.pool()).await.unwrap();
    assert_eq!(acting, 1, "however often it was looked at, one run acts on the instance");
    database.drop().await;
}

/// The node was not heard of for long, and an instance runs there.
fn fallen_silent(engine: &Engine) -> Arc<Env> {
    // A look that failed before it gave up anything leaves the instance as it was, which holds nothing here.
    wait_for(run(engine, "update app_instances set status = 'decommissioned' where status = 'running'"));
    let env = begin_anew(engine, "running", false);
    let silent = "update nodes set status = 'active', last_seen_at = engine.now() - interval '1 hour'";
    wait_for(run(engine, silent));
    env
}
