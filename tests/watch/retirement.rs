//! What is to be retired ends, though the run that was to do it is gone; what somebody cancelled does not.

use std::sync::Arc;
use std::time::Duration;

use activities::Env;
use engine::testing::{Check, check_workflow};
use engine::{Engine, RunState, Start, Workflow};
use serde_json::{Value, json};
use store::retirements;
use uuid::Uuid;
use workflows::reconcilers::retirement::RetireOverdue;
use workflows::version::{Retirement, When};

use crate::catalog::admin_catalog;
use crate::lifecycle::{VERSION, active_version, let_time_pass, wait_for};
use crate::support::database::TestDatabase;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};

#[tokio::test(flavor = "multi_thread")]
async fn looking_for_overdue_retirements_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: RetireOverdue {},
        fresh_env: one_overdue,
        leftovers: what_is_wrong,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

/// A version that should be retired by now and whose run is gone, and the wish to retire one that is gone itself.
fn one_overdue(engine: &Engine) -> Arc<Env> {
    let env = active_version(engine);
    let wish = Retirement {
        version_id: VERSION,
        when: When::Unused,
        grace_seconds: 60,
        by: crate::lifecycle::somebody(),
    };
    let ask = async {
        let mut conn = env.pool().bare().acquire().await.unwrap();
        sqlx::raw_sql("delete from engine.run where kind = 'version.retire'; delete from retirements")
            .execute(&mut *conn)
            .await
            .unwrap();
        for subject in [VERSION, Uuid::nil()] {
            let input = serde_json::to_value(&wish).unwrap();
            retirements::ask(&mut conn, Retirement::NAME, subject, &input, -120.0).await.unwrap();
        }
    };
    wait_for(ask);
    env
}

/// Once it was looked, one run retires the version and the other wish is forgotten; never do two runs retire it.
fn what_is_wrong(env: &Env) -> Vec<String> {
    let wrong = "select format('the look %s: %s runs, %s wishes', look.state, begun.runs, wishes.count)
         from (select state from engine.run where kind = 'platform.retire_overdue' order by id desc limit 1) look,
              (select count(*) as runs from engine.run where kind = 'version.retire') begun,
              (select count(*) from retirements) wishes
         where begun.runs > 1 or (look.state = 'succeeded' and (begun.runs, wishes.count) <> (1, 1))";
    wait_for(sqlx::query_scalar(wrong).fetch_all(env.pool().bare())).expect("the runs")
}

async fn look(platform: &Platform) -> Value {
    let options = Start { correlation_id: "c-look".into(), ..Start::default() };
    let run = platform.story.start_workflow(&RetireOverdue {}, options).await.expect("a start");
    platform.succeeds(run.id).await;
    sqlx::query_scalar("select output from engine.run where id = $1")
        .bind(run.id)
        .fetch_one(&platform.story.pool)
        .await
        .unwrap()
}

fn found(waiting: u32, restarted: u32, settled: u32) -> Value {
    json!({ "waiting": waiting, "restarted": restarted, "not_restarted": 0, "settled": settled })
}

async fn status(platform: &Platform, version: &str) -> Value {
    let path = format!("/api/v1/apps/catalog/hello/versions/{version}");
    platform.http.get(&path).await.with(200)["status"].clone()
}

/// Asks for its retirement, and answers the run that waits for the grace period.
async fn retire(platform: &Platform, version: &str) -> Uuid {
    let path = admin_catalog(&format!("/hello/versions/{version}/retire"));
    let made = platform.http.post(&path, json!({ "when": "unused" })).await.with(202);
    let run = id_of(&made["workflow"]);
    platform.story.until(run, &[RunState::Waiting]).await;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retirement_whose_run_is_gone_is_started_again_and_one_that_was_cancelled_is_not() {
    let platform = Platform::new().await;
    let gone = platform.version(&profile(PORT, 30)).await;
    let cancelled = platform.version(&profile(PORT, 30)).await;
    let waits = platform.version(&profile(PORT, 30)).await;
    let mut runs = Vec::new();
    for version in [&gone, &cancelled, &waits] {
        runs.push(retire(&platform, version).await);
    }
    platform.story.ask("cancel", runs[1]).await.unwrap();
    assert_eq!(platform.story.ends(runs[1]).await, RunState::Cancelled);
    platform.story.ask("pause", runs[2]).await.unwrap();
    platform.story.until(runs[2], &[RunState::Paused]).await;
    assert_eq!(look(&platform).await, found(0, 0, 0), "nothing is overdue yet");
    sqlx::query("delete from engine.run where id = $1")
        .bind(runs[0])
        .execute(&platform.story.pool)
        .await
        .unwrap();
    platform.story.advance(Duration::from_secs(400 * 24 * 3600)).await;
    assert_eq!(look(&platform).await, found(1, 1, 1));
    platform
        .story
        .until_true(
            "it is retired",
            "select v.status = 'retired' and $1::uuid is not null from app_versions v join apps a on a.id = v.app_id
             where a.slug = 'hello' and v.version = ($2::text[])[1]",
            runs[0],
            &[&gone],
        )
        .await;
    assert_eq!(status(&platform, &cancelled).await, "deprecated");
    assert_eq!(look(&platform).await, found(1, 0, 0), "what is done is done");
    platform.end().await;
}
