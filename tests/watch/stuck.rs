//! A run that does not advance is told, once for each time and reason, under its own correlation id.

use std::sync::Arc;
use std::time::Duration;

use activities::Env;
use engine::testing::{Check, check_workflow};
use engine::{Engine, RunState, Start, Workers};
use serde_json::{Value, json};
use store::stuck_runs::{self, Seen};
use uuid::Uuid;
use workflows::reconcilers::stuck_runs::{WatchRuns, tell_stuck};

use super::scraped;
use crate::http::{Http, admin};
use crate::lifecycle::{let_time_pass, wait_for};
use crate::support::database::TestDatabase;
use crate::support::realm::{DEMO, EXAMPLE};
use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

/// Looks once, with workers that know the platform's own workflows and no others. Answers what the look tells of itself.
async fn look(story: &Story) -> Value {
    let env = Arc::new(Env::new(story.engine.clone()));
    let workers = Workers::start(&story.engine, env, workflows::registry());
    let options = Start { correlation_id: "c-look".into(), ..Start::default() };
    let run = story.start_workflow(&WatchRuns {}, options).await.unwrap();
    assert_eq!(story.ends(run.id).await, RunState::Succeeded, "{}", story.describe(run.id).await);
    workers.stop().await;
    let told: Value = sqlx::query_scalar("select output from engine.run where id = $1")
        .bind(run.id)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    told
}

/// Subject, correlation id and project of everything that was told, with its cause.
async fn told(story: &Story) -> Vec<(String, String, Uuid, String)> {
    sqlx::query_as(
        "select subject, correlation_id, project_id, data -> 'stuck_cause' ->> 'code' from outbox
         where type = 'workflows.run_stuck' order by pos",
    )
    .fetch_all(&story.pool)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_needs_a_person_is_told_once_until_it_sticks_again() {
    let mut story = Story::new().await;
    let http = Http::over(&story).await;
    story.world.trouble("odd", [Trouble::NeedsOperator, Trouble::NeedsOperator]);
    story.world.trouble("kept/undo", [Trouble::UndoFails]);
    let of = |correlation: &str, project_id| Start {
        correlation_id: correlation.into(),
        org_id: Some(DEMO),
        project_id,
        ..start()
    };
    let odd = story.start_as([touch("odd")], of("c-odd", EXAMPLE)).await.unwrap().id;
    let kept = story.start_as([hold("kept"), Do::Fail], of("c-kept", Uuid::nil())).await.unwrap().id;
    let paused = story.start([Do::Wait(HOUR)]).await;
    story.until(paused, &[RunState::Waiting]).await;
    story.ask("pause", paused).await.unwrap();
    story.settles(odd).await;
    story.settles(kept).await;
    story.rest().await;

    assert_eq!(look(&story).await, json!({ "stuck": 2, "told": 2, "more": false }));
    let mut found = told(&story).await;
    found.sort_by_key(|(_, correlation, ..)| correlation.clone());
    let one = |run: Uuid, correlation: &str, project, code: &str| {
        (run.to_string(), correlation.to_owned(), project, code.to_owned())
    };
    assert_eq!(
        found,
        [one(kept, "c-kept", Uuid::nil(), "undo_failed"), one(odd, "c-odd", EXAMPLE, "retries_exhausted")],
        "what an operator paused is known to somebody"
    );
    for path in ["/workflows/stuck", "/workflows?cause=undo_failed"] {
        let shown = http.get(&admin(path)).await.ids();
        assert!(shown.contains(&kept), "an administrator sees the platform's own runs at {path}: {shown:?}");
    }
    assert_eq!(
        look(&story).await,
        json!({ "stuck": 2, "told": 0, "more": false }),
        "a second look tells nothing new"
    );
    let page = scraped(&http).await;
    assert!(page.contains("gpuaas_engine_stuck_runs{cause=\"undo_failed\"} 1.0"), "{page}");

    story.work();
    story.ask("retry", odd).await.unwrap();
    story
        .until_true(
            "it was tried again and sticks again",
            "select state = 'paused' and owner is null and epoch > 1 and $2::text[] is not null from engine.run where id = $1
             and (select attempt from engine.step where run_id = $1 and key = 'odd') = 2",
            odd,
            &[],
        )
        .await;
    story.rest().await;
    assert_eq!(
        look(&story).await,
        json!({ "stuck": 2, "told": 0, "more": false }),
        "it never went on, so it is the same time"
    );

    story.work();
    story.ask("retry", odd).await.unwrap();
    assert_eq!(story.ends(odd).await, RunState::Succeeded);
    story.rest().await;
    assert_eq!(look(&story).await, json!({ "stuck": 1, "told": 0, "more": false }));
    story.advance(Duration::from_secs(601)).await;
    look(&story).await;
    let known: Vec<Uuid> =
        sqlx::query_scalar("select run_id from stuck_runs").fetch_all(&story.pool).await.unwrap();
    assert_eq!(known, [kept], "what goes on is forgotten, so that the next time is told");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn however_many_do_not_advance_each_is_told_though_one_look_sees_a_few() {
    let mut story = Story::new().await;
    story.world.trouble("odd", [Trouble::NeedsOperator, Trouble::NeedsOperator, Trouble::NeedsOperator]);
    let mut stuck = Vec::new();
    for _ in 0..3 {
        let run = story.start([touch("odd")]).await;
        story.settles(run).await;
        stuck.push(run.to_string());
    }
    story.rest().await;
    let mut looks = Vec::new();
    for _ in 0..4 {
        let mut tx = story.pool.begin().await.unwrap();
        let look = tell_stuck(&mut tx, 1).await.unwrap();
        tx.commit().await.unwrap();
        looks.push((look.stuck, look.told, look.more));
    }
    assert_eq!(looks, [(1, 1, true), (1, 1, true), (1, 1, true), (0, 0, false)]);
    let mut found: Vec<String> = told(&story).await.into_iter().map(|(run, ..)| run).collect();
    found.sort();
    stuck.sort();
    assert_eq!(found, stuck);
    let mut tx = story.pool.begin().await.unwrap();
    let look = tell_stuck(&mut tx, 5).await.unwrap();
    assert_eq!(
        (look.stuck, look.told, look.more),
        (3, 0, false),
        "then it begins anew, and tells nothing twice"
    );
    drop(tx);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_go_on_by_itself_is_told_only_when_it_does_not() {
    let story = Story::idle(quick(), None).await;
    let run_id = Uuid::now_v7();
    let nobody: [Uuid; 0] = [];
    let lost = Seen { run_id, cause: "lease_lost", settled: false };
    let look = async |seen: &[Seen]| {
        let mut conn = story.pool.acquire().await.unwrap();
        stuck_runs::forget(&mut conn, 600.0).await.unwrap();
        stuck_runs::look(&mut conn, seen, 50.0).await.unwrap()
    };
    assert_eq!(look(&[lost]).await, nobody, "another process may take it over");
    story.advance(Duration::from_secs(61)).await;
    assert_eq!(look(&[]).await, nobody, "it looks alive for a moment, and is not told as what it is not");
    assert_eq!(look(&[lost]).await, [run_id]);
    story.advance(Duration::from_secs(300)).await;
    assert_eq!(look(&[lost]).await, nobody, "told once");
    let other = Seen { cause: "unknown_version", ..lost };
    assert_eq!(look(&[other]).await, nobody, "another reason is another time");
    story.advance(Duration::from_secs(61)).await;
    assert_eq!(look(&[other]).await, [run_id]);
    story.advance(Duration::from_secs(601)).await;
    assert_eq!(look(&[]).await, nobody);
    let settled = Seen { settled: true, ..other };
    assert_eq!(look(&[settled]).await, [run_id], "it went on for long, and needs a person now");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_for_stuck_runs_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: WatchRuns {},
        fresh_env: one_stuck,
        leftovers: what_was_told,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

/// A run that waits for a person, of which nothing was told.
fn one_stuck(engine: &Engine) -> Arc<Env> {
    wait_for(
        sqlx::raw_sql(
            "delete from outbox; delete from stuck_runs;
             insert into engine.run (id, kind, version, project_id, correlation_id, state, cause, input)
             values ('00000000-0000-0000-0000-000000000007', 'test.lost', 1, '00000000-0000-0000-0000-000000000001', 'c',
                     'paused', 'retries_exhausted', '{}') on conflict do nothing",
        )
        .execute(engine.pool().bare()),
    )
    .expect("a stuck run");
    Arc::new(Env::new(engine.clone()))
}

fn what_was_told(env: &Env) -> Vec<String> {
    let all = "select type || ' ' || subject from outbox union all select 'seen ' || run_id from stuck_runs order by 1";
    wait_for(sqlx::query_scalar(all).fetch_all(env.pool().bare())).expect("what was told")
}
