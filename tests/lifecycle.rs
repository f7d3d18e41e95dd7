//! Every registered workflow survives being struck anywhere.

use std::sync::Arc;
use std::time::Duration;

use activities::Env;
use engine::testing::{Check, check_workflow};
use engine::{Engine, Registry};
use futures::future::BoxFuture;
use uuid::Uuid;
use workflows::check_promises::CheckPromises;
use workflows::demo::Tour;

use crate::support::database::TestDatabase;

/// Workflows that have a story here; the registry must not know any other.
const CHECKED: &[&str] =
    &["demo.tour", "platform.check_promises", "instance.deploy", "instance.decommission"];

#[test]
fn every_registered_workflow_is_checked() {
    let registry: Registry<Env> = workflows::registry();
    let unchecked: Vec<&str> =
        registry.kinds().iter().map(|k| k.name).filter(|name| !CHECKED.contains(name)).collect();
    assert!(unchecked.is_empty(), "no story strikes {unchecked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_tour_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: Tour { thing: "desk 4".into(), busy_tries: 0, wait_seconds: 60, fits: true },
        fresh_env: |engine| Arc::new(Env::new(engine.clone())),
        leftovers: Env::desk,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nightly_check_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: CheckPromises {},
        fresh_env: |engine| Arc::new(Env::new(engine.clone())),
        leftovers: |_env| Vec::new(),
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

/// The tour waits for the clock and for a word; both come with time.
fn let_time_pass(engine: Engine, _run: Uuid) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        sqlx::query("update engine.test_clock set ahead = ahead + make_interval(secs => $1)")
            .bind(Duration::from_secs(61).as_secs_f64())
            .execute(engine.pool())
            .await
            .expect("the clock moves");
        engine.wake();
    })
}
