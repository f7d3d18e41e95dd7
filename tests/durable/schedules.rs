//! Ticks: each fires once whoever wakes first, and those that passed unseen are treated as the schedule says.

use std::sync::Arc;
use std::time::Duration;

use engine::{
    Engine, Halt, Missed, Overlap, PlannedStep, Run, RunState, Schedule, ScheduleError, Workers, Workflow,
};
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use crate::support::story::{Story, operator, quick, registry};
use crate::support::world::{Do, Script, World, touch};

const HOUR: u64 = 3_600_000;

async fn declare(story: &Story, missed: Missed, overlap: Overlap, does: Vec<Do>) {
    declare_as("hourly", story, missed, overlap, does).await;
}

async fn declare_as(name: &'static str, story: &Story, missed: Missed, overlap: Overlap, does: Vec<Do>) {
    let schedule = Schedule { name, cron: "0 0 * * * *", missed, overlap };
    let mut conn = story.pool.acquire().await.unwrap();
    story.engine.ensure_schedule(&mut conn, &schedule, &Script { does }).await.unwrap();
}

/// Waits until every tick up to the clock's time is dealt with.
async fn caught_up(story: &Story) {
    story
        .until_true(
            "all due ticks are dealt with",
            "select not exists (select 1 from engine.schedule where next_at <= engine.now())
                 and $1::uuid is not null and $2::text[] is not null",
            Uuid::nil(),
            &[],
        )
        .await;
}

/// Outcomes in the order of their nominal times.
async fn ticks(story: &Story) -> Vec<String> {
    sqlx::query_scalar("select outcome from engine.tick where schedule = 'hourly' order by nominal")
        .fetch_all(&story.pool)
        .await
        .unwrap()
}

async fn runs(story: &Story) -> i64 {
    sqlx::query_scalar("select count(*) from engine.run").fetch_one(&story.pool).await.unwrap()
}

/// What becomes of five ticks that pass while no process runs.
async fn after_five_hours(missed: Missed) -> (Vec<String>, i64) {
    let mut story = Story::idle(quick(), None).await;
    declare(&story, missed, Overlap::Queue, vec![touch("a")]).await;
    story.advance(Duration::from_millis(5 * HOUR)).await;
    story.work();
    caught_up(&story).await;
    story.quiet().await;
    let seen = (ticks(&story).await, runs(&story).await);
    story.end().await;
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_ticks_are_skipped_where_so_declared() {
    assert_eq!(after_five_hours(Missed::Skip).await, (vec!["missed".to_owned(); 5], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_tick_that_is_hours_late_was_missed_too() {
    let mut story = Story::idle(quick(), None).await;
    declare(&story, Missed::Skip, Overlap::Queue, vec![touch("a")]).await;
    // Half past the first tick there was.
    sqlx::query(
        "update engine.test_clock set ahead = ahead + (select next_at - engine.now() + interval '30 minutes' from engine.schedule)",
    )
    .execute(&story.pool)
    .await
    .unwrap();
    story.work();
    caught_up(&story).await;
    assert_eq!((ticks(&story).await, runs(&story).await), (vec!["missed".to_owned()], 0));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_latest_of_the_missed_ticks_may_stand_for_all() {
    let mut expected = vec!["missed".to_owned(); 4];
    expected.push("fired".into());
    assert_eq!(after_five_hours(Missed::One).await, (expected, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_missed_ticks_may_be_made_up_for() {
    assert_eq!(after_five_hours(Missed::All).await, (vec!["fired".to_owned(); 5], 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_a_hundred_missed_ticks_are_made_up_for_and_they_are_the_latest() {
    let mut story = Story::idle(quick(), None).await;
    declare(&story, Missed::All, Overlap::Queue, vec![touch("a")]).await;
    story.advance(Duration::from_millis(150 * HOUR)).await;
    story.work();
    caught_up(&story).await;
    story.quiet().await;
    assert_eq!(runs(&story).await, 100);
    let late: f64 = sqlx::query_scalar(
        "select extract(epoch from engine.now() - max(nominal))::float8 from engine.tick where outcome = 'fired'",
    )
    .fetch_one(&story.pool)
    .await
    .unwrap();
    assert!(late < 3600.0, "the latest tick fired; the last that did is {late} s old");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_absence_still_ends_with_the_latest_tick() {
    let mut story = Story::idle(quick(), None).await;
    declare(&story, Missed::One, Overlap::Queue, vec![touch("a")]).await;
    story.advance(Duration::from_millis(300 * HOUR)).await;
    story.work();
    caught_up(&story).await;
    story.quiet().await;
    let late: f64 = sqlx::query_scalar(
        "select extract(epoch from engine.now() - max(nominal))::float8 from engine.tick where outcome = 'fired'",
    )
    .fetch_one(&story.pool)
    .await
    .unwrap();
    assert!(late < 3600.0, "the tick that stands for all is {late} s old");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_one_fires_each_tick() {
    let story = Story::new().await;
    let other = Engine::new(story.database.options.clone(), quick());
    let workers = Workers::start(&other, Arc::clone(&story.world), registry());
    declare(&story, Missed::All, Overlap::Queue, vec![touch("a")]).await;
    for _ in 0..10 {
        story.advance(Duration::from_millis(HOUR)).await;
        caught_up(&story).await;
    }
    story.quiet().await;
    assert_eq!((ticks(&story).await, runs(&story).await), (vec!["fired".to_owned(); 10], 10));
    workers.stop().await;
    other.close().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_meets_the_last_run_may_be_skipped() {
    let story = Story::new().await;
    declare(&story, Missed::All, Overlap::Skip, vec![Do::Wait(1000 * HOUR)]).await;
    for _ in 0..2 {
        story.advance(Duration::from_millis(HOUR)).await;
        caught_up(&story).await;
    }
    assert_eq!(ticks(&story).await, ["fired", "skipped_overlap"]);
    story.quiet().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_by_hand_that_ends_does_not_hide_one_that_goes_on() {
    let story = Story::new().await;
    declare(&story, Missed::All, Overlap::Skip, vec![Do::Wait(1000 * HOUR)]).await;
    to_the_next_tick(&story).await;
    caught_up(&story).await;
    let mut conn = story.pool.acquire().await.unwrap();
    let by_hand = story.engine.run_schedule(&mut conn, "hourly", &operator()).await.unwrap().id;
    drop(conn);
    story.ask("cancel", by_hand).await.unwrap();
    assert_eq!(story.ends(by_hand).await, RunState::Cancelled);
    to_the_next_tick(&story).await;
    caught_up(&story).await;
    assert_eq!(ticks(&story).await, ["fired", "by_hand", "skipped_overlap"]);
    story.quiet().await;
    story.end().await;
}

/// The run of the first tick is alive, and the second waits for it.
async fn fires_when_the_first_ends(story: &Story) {
    assert_eq!(ticks(story).await, ["fired"], "the first one's run is alive");
    let first: Uuid = sqlx::query_scalar("select run_id from engine.tick where schedule = 'hourly'")
        .fetch_one(&story.pool)
        .await
        .unwrap();
    story.ask("cancel", first).await.unwrap();
    caught_up(story).await;
    assert_eq!(ticks(story).await, ["fired", "fired"]);
    story.quiet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_meets_the_last_run_may_wait_for_its_end() {
    let story = Story::new().await;
    declare(&story, Missed::All, Overlap::Queue, vec![Do::Wait(1000 * HOUR)]).await;
    declare_as("witness", &story, Missed::One, Overlap::Skip, vec![]).await;
    story.advance(Duration::from_millis(HOUR)).await;
    caught_up(&story).await;
    story.advance(Duration::from_millis(HOUR)).await;
    let seen = "select next_at > engine.now() and $1::uuid is not null and $2::text[] is not null
        from engine.schedule where name = 'witness'";
    story.until_true("the second tick was seen", seen, Uuid::nil(), &[]).await;
    fires_when_the_first_ends(&story).await;
    story.end().await;
}

/// Moves the clock to just after the next tick, which is on time then.
async fn to_the_next_tick(story: &Story) {
    let moved = "update engine.test_clock set ahead = ahead
        + (select next_at - engine.now() + interval '1 second' from engine.schedule where name = 'hourly')";
    sqlx::query(moved).execute(&story.pool).await.unwrap();
    story.engine.wake();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_waited_for_the_last_run_was_not_missed_however_long_that_took() {
    let story = Story::new().await;
    declare(&story, Missed::Skip, Overlap::Queue, vec![Do::Wait(1000 * HOUR)]).await;
    to_the_next_tick(&story).await;
    caught_up(&story).await;
    assert_eq!(ticks(&story).await, ["fired"]);
    to_the_next_tick(&story).await;
    let waits = "select exists (select 1 from engine.schedule where waiting_tick = next_at)
        and $1::uuid is not null and $2::text[] is not null";
    story.until_true("the second tick waits", waits, Uuid::nil(), &[]).await;
    story.advance(Duration::from_secs(600)).await;
    fires_when_the_first_ends(&story).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_schedule_fires_only_by_hand() {
    let story = Story::new().await;
    declare(&story, Missed::All, Overlap::Skip, vec![touch("a")]).await;
    let mut conn = story.pool.acquire().await.unwrap();
    story.engine.pause_schedule(&mut conn, "hourly", &operator()).await.unwrap();
    // Another of the same hours shows that they were seen; twice, because one sweep fires both in any order.
    declare_as("witness", &story, Missed::One, Overlap::Queue, vec![]).await;
    for _ in 0..2 {
        story.advance(Duration::from_millis(HOUR)).await;
        let seen = "select next_at > engine.now() and $1::uuid is not null and $2::text[] is not null
            from engine.schedule where name = 'witness'";
        story.until_true("the witness fired", seen, Uuid::nil(), &[]).await;
    }
    assert_eq!(ticks(&story).await, [""; 0]);
    let handle = story.engine.run_schedule(&mut conn, "hourly", &operator()).await.unwrap();
    story.engine.wake();
    story.ends(handle.id).await;
    assert_eq!(ticks(&story).await, ["by_hand"]);
    let acts: Vec<String> =
        sqlx::query_scalar("select act from engine.act where schedule = 'hourly' order by at")
            .fetch_all(&mut *conn)
            .await
            .unwrap();
    assert_eq!(acts, ["pause", "run"], "each act is recorded");
    story.engine.resume_schedule(&mut conn, "hourly", &operator()).await.unwrap();
    drop(conn);
    caught_up(&story).await;
    story.quiet().await;
    let mut all = ticks(&story).await;
    all.sort();
    assert_eq!(all, ["by_hand", "fired", "skipped_overlap"], "resumed, it deals with what it missed");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_cannot_be_read_keeps_no_other_from_its_tick() {
    let mut story = Story::idle(quick(), None).await;
    declare_as("before", &story, Missed::One, Overlap::Skip, vec![touch("a")]).await;
    declare(&story, Missed::One, Overlap::Skip, vec![touch("a")]).await;
    // As a newer release may have written it.
    sqlx::query("update engine.schedule set cron = 'whenever' where name = 'before'")
        .execute(&story.pool)
        .await
        .unwrap();
    story.advance(Duration::from_millis(HOUR)).await;
    story.work();
    let fired = "select exists (select from engine.tick where schedule = 'hourly' and outcome = 'fired')
        and $1::uuid is not null and $2::text[] is not null";
    story.until_true("the other one fires", fired, Uuid::nil(), &[]).await;
    story.quiet().await;
    story.end().await;
}

async fn declared(story: &Story) -> Vec<String> {
    sqlx::query_scalar("select name from engine.schedule order by name").fetch_all(&story.pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_release_no_longer_declares_goes_and_what_another_has_stays() {
    let story = Story::idle(quick(), None).await;
    for name in ["kept", "left_over"] {
        declare_as(name, &story, Missed::One, Overlap::Skip, vec![]).await;
    }
    sqlx::query(
        "insert into engine.schedule (name, kind, version, cron, missed, overlap, next_at)
         select 'of_another', 'test.newer', 1, cron, missed, overlap, next_at from engine.schedule where name = 'kept'",
    )
    .execute(&story.pool)
    .await
    .unwrap();
    let beside = Uuid::now_v7();
    sqlx::query(
        "with living as (insert into engine.incarnation (id, name, slots, expires_at)
             values ($1, 'newer', 1, clock_timestamp() + interval '1 hour') returning id)
         insert into engine.capability (incarnation_id, kind, version) select id, 'test.newer', 1 from living",
    )
    .bind(beside)
    .execute(&story.pool)
    .await
    .unwrap();
    let mut conn = story.pool.acquire().await.unwrap();
    let kinds = registry().kinds();
    let gone = story.engine.forget_schedules(&mut conn, &["kept"], &kinds).await.unwrap();
    assert_eq!(gone, [""; 0], "a newer release runs beside and may have declared it");

    sqlx::query("update engine.incarnation set died_at = clock_timestamp() where id = $1")
        .bind(beside)
        .execute(&mut *conn)
        .await
        .unwrap();
    let gone = story.engine.forget_schedules(&mut conn, &["kept"], &kinds).await.unwrap();
    assert_eq!(gone, ["left_over"]);
    drop(conn);
    assert_eq!(declared(&story).await, ["kept", "of_another"]);
    story.end().await;
}

/// Its input has no words.
#[derive(Deserialize)]
struct Unspeakable;

impl Serialize for Unspeakable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("unspeakable"))
    }
}

impl Workflow for Unspeakable {
    const NAME: &'static str = "test.unspeakable";
    const PLAN: &'static [PlannedStep] = &[];
    type Env = World;

    async fn run(&self, _: &mut Run<World>) -> Result<(), Halt> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_whose_input_cannot_be_written_is_refused() {
    let story = Story::idle(quick(), None).await;
    let hourly =
        Schedule { name: "hourly", cron: "0 0 * * * *", missed: Missed::One, overlap: Overlap::Skip };
    let mut conn = story.pool.acquire().await.unwrap();
    let refused = story.engine.ensure_schedule(&mut conn, &hourly, &Unspeakable).await;
    assert!(matches!(&refused, Err(ScheduleError::Input("test.unspeakable", _))), "{refused:?}");
    drop(conn);
    assert_eq!(declared(&story).await, [""; 0]);
    story.end().await;
}
