//! One project's flood does not hold up another's first run, caps hold, and too much is refused.

use engine::{Engine, RunState, Settings, Start, StartError, Workers};
use uuid::Uuid;

use crate::support::slow::short_or_slow;
use crate::support::story::{Story, quick, registry, start};
use crate::support::world::{Do, Trouble, touch};

fn of(project: u128) -> Start {
    Start { project_id: Uuid::from_u128(project), ..start() }
}

/// Starts many runs of a project, each in its own transaction, a few at a time.
async fn flood(story: &Story, project: u128, runs: usize) {
    let starts = (0..runs).map(|_| story.start_as([touch("a"), touch("b")], of(project)));
    futures::future::try_join_all(starts).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn anothers_first_run_starts_within_one_window() {
    passes_a_flood(8, short_or_slow(1_000, 10_000)).await;
}

/// With one slot every place is given back alone, so that age, not the turn, would decide between the oldest of each.
#[tokio::test(flavor = "multi_thread")]
async fn anothers_first_run_starts_within_one_window_of_a_single_slot() {
    passes_a_flood(1, 100).await;
}

async fn passes_a_flood(slots: usize, runs: usize) {
    let window = 2 * slots as i64;
    let settings = Settings { slots, project_backlog: 100_000, ..quick() };
    let mut story = Story::idle(settings, None).await;
    flood(&story, 1, runs).await;
    // The flood fills the window and stands still there, so that nobody is admitted while the other one comes.
    story.world.trouble("a", vec![Trouble::Hang; 1_000]);
    story.work();
    story.until_true("the window is full", WINDOW_FULL, Uuid::nil(), &[&window.to_string()]).await;
    let first = story.start_as([touch("mine")], of(2)).await.unwrap();
    story.world.gate.add_permits(1_000);
    assert_eq!(story.ends(first.id).await, RunState::Succeeded);
    let ahead: i64 = sqlx::query_scalar(
        "select count(*) from engine.run a join engine.run b on b.id = $1
         where a.project_id <> b.project_id and a.started_at > b.created_at and a.started_at < b.started_at",
    )
    .bind(first.id)
    .fetch_one(&story.pool)
    .await
    .unwrap();
    assert!(ahead <= window, "{ahead} runs of the flood came before it, the window is {window}");
    story.until_true("the flood ends", EVERYTHING_ENDED, Uuid::nil(), &[]).await;
    story.end().await;
}

const WINDOW_FULL: &str =
    "select count(*) >= $2[1]::bigint and count(owner) >= $2[1]::bigint / 2 and $1::uuid is not null
    from engine.run where queued_job is not null";

const EVERYTHING_ENDED: &str = "select not exists (select 1 from engine.run where finished_at is null)
    and $1::uuid is not null and $2::text[] is not null";

#[tokio::test(flavor = "multi_thread")]
async fn a_project_never_has_more_than_its_cap_under_way() {
    const CAP: i64 = 5;
    let story = Story::with(Settings { project_cap: CAP, ..quick() }, None).await;
    flood(&story, 1, 100).await;
    flood(&story, 2, 100).await;
    loop {
        let (most, live): (i64, i64) = sqlx::query_as(
            "select coalesce(max(n), 0)::bigint, (select count(*) from engine.run where finished_at is null)
             from (select count(*) as n from engine.run where owner is not null or queued_job is not null
                   group by project_id) held",
        )
        .fetch_one(&story.pool)
        .await
        .unwrap();
        assert!(most <= CAP, "{most} runs of one project under way with a cap of {CAP}");
        if live == 0 {
            break;
        }
    }
    story.end().await;
}

/// The most specific word counts; whoever nothing was said of has what everybody has.
#[tokio::test(flavor = "multi_thread")]
async fn a_cap_that_an_administrator_set_holds_for_its_project() {
    let mut story = Story::idle(quick(), None).await;
    crate::support::realm::settle(&story.pool).await;
    let cap = |layer: &'static str, scope: Uuid, cap: i64| {
        sqlx::query(
            "insert into policies (layer, scope_id, key, value, updated_by)
             values ($1, $2, 'workflow.max_in_flight_per_project', to_jsonb($3), $2)",
        )
        .bind(layer)
        .bind(scope)
        .bind(cap)
        .execute(&story.pool)
    };
    let (org, project) = (crate::support::realm::DEMO, crate::support::realm::EXAMPLE);
    cap("global", Uuid::nil(), 3).await.unwrap();
    cap("org", org, 5).await.unwrap();
    let both = [(Uuid::from_u128(7), 3), (project, 5)];
    story.world.trouble("a", vec![Trouble::Hang; 1_000]);
    for (project_id, _) in both {
        for _ in 0..20 {
            story.start_as([touch("a")], Start { project_id, ..start() }).await.unwrap();
        }
    }
    story.work();
    for (project, cap) in both {
        let full =
            "select count(*) = $2[1]::bigint from engine.run where project_id = $1 and owner is not null";
        story.until_true("the project has what it may", full, project, &[&cap.to_string()]).await;
        let queued = "select count(*) = $2[1]::bigint from engine.run where project_id = $1 and queued_job is not null";
        story.until_true("and no more", queued, project, &[&cap.to_string()]).await;
    }
    story.world.gate.add_permits(1_000);
    story.until_true("all of them end", EVERYTHING_ENDED, Uuid::nil(), &[]).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_backlog_refuses_its_own_project_only() {
    let story = Story::idle(Settings { project_backlog: 10, ..quick() }, None).await;
    for _ in 0..10 {
        story.start_as([touch("a")], of(1)).await.unwrap();
    }
    assert!(matches!(story.start_as([touch("a")], of(1)).await, Err(StartError::Backlog)));
    story.start_as([touch("a")], of(2)).await.expect("another project has its own backlog");
    let mut story = story;
    story.work();
    story.until_true("the backlog drains", EVERYTHING_ENDED, Uuid::nil(), &[]).await;
    story.start_as([touch("a")], of(1)).await.expect("there is room again");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_process_starts_another_drives() {
    let story = Story::idle(quick(), None).await;
    let run = story.start([touch("a"), Do::Sleep(10), touch("b")]).await;
    let worker = Engine::new(story.database.options.clone(), quick());
    let workers = Workers::start(&worker, std::sync::Arc::clone(&story.world), registry());
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    let later = story.start([touch("a")]).await;
    assert_eq!(story.ends(later).await, RunState::Succeeded, "an idle process looks for work too");
    workers.stop().await;
    worker.close().await;
    story.end().await;
}
