//! The database goes away, comes back, or answers too late: work waits for it, and no promise breaks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use engine::{RunState, Settings, StartError};
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection, PgConnection, PgPool};
use uuid::Uuid;

use crate::support::cluster::Cluster;
use crate::support::database::TestDatabase;
use crate::support::outsider::short_lease;
use crate::support::proxy::Proxy;
use crate::support::slow::short_or_slow;
use crate::support::story::{Story, quick, start};
use crate::support::world::{Do, World, hold, touch};

/// Only our own database is needed for these, so an outage may delay them but not fail them.
fn ours() -> Vec<Do> {
    vec![Do::Write("a".into()), Do::Sleep(5), Do::Child(vec![Do::Write("in".into()), Do::Sleep(1)])]
}

/// Steps that reach outside may fail with the world; then they unwind.
fn outside() -> Vec<Do> {
    vec![touch("a"), hold("b"), Do::Sleep(1), hold("c")]
}

/// Starts again and again until one is accepted: the caller of an API would do the same.
async fn start_patiently(story: &Story, does: Vec<Do>) -> Uuid {
    let key = Uuid::new_v4().to_string();
    let began = Instant::now();
    loop {
        let started = async {
            let mut tx = story.pool.begin().await?;
            let options = engine::Start { start_key: Some(key.clone()), ..start() };
            let script = crate::support::world::Script { does: does.clone() };
            let started = story.engine.start(&mut tx, &script, options).await?;
            tx.commit().await?;
            Ok::<_, StartError>(started.id)
        };
        match started.await {
            Ok(id) => return id,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(30), "no start is accepted: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn all_end(story: &Story, ours: &[Uuid], outside: &[Uuid]) {
    for run in ours {
        assert_eq!(story.ends(*run).await, RunState::Succeeded, "{}", story.describe(*run).await);
    }
    for run in outside {
        let ended = story.ends(*run).await;
        assert!(
            matches!(ended, RunState::Succeeded | RunState::Compensated | RunState::Failed),
            "{}",
            story.describe(*run).await
        );
    }
}

/// A server that may be crashed, with a database on it.
async fn own_server() -> (Cluster, TestDatabase) {
    let cluster = Cluster::start();
    let mut admin = PgConnection::connect(&cluster.url()).await.unwrap();
    // As an installation would have it before its migrations.
    sqlx::raw_sql("create role gpuaas_app login").execute(&mut admin).await.unwrap();
    let database = TestDatabase::on(cluster.url().parse().unwrap()).await;
    (cluster, database)
}

#[tokio::test(flavor = "multi_thread")]
async fn work_survives_a_server_that_crashes_again_and_again() {
    let (cluster, database) = own_server().await;
    let mut story = Story::on(database, quick(), None);
    story.work();
    let (mut mine, mut others) = (Vec::new(), Vec::new());
    for _ in 0..short_or_slow(3, 20) {
        for _ in 0..10 {
            mine.push(start_patiently(&story, ours()).await);
            others.push(start_patiently(&story, outside()).await);
        }
        cluster.stop_at_once();
        cluster.start_again();
    }
    all_end(&story, &mine, &others).await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_outage_an_idle_process_accepts_starts_again() {
    let (cluster, database) = own_server().await;
    let mut story = Story::on(database, short_lease(), None);
    story.work();
    let before = story.start([touch("a")]).await;
    story.ends(before).await;
    cluster.stop_at_once();
    let noticed = async {
        while !story.engine.pressed() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), noticed).await.expect("the outage is noticed");
    cluster.start_again();
    let run = start_patiently(&story, vec![touch("b")]).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.end().await;
}

/// A story whose engine has connections of its own name, so that they alone can be ended.
async fn named_story(settings: Settings) -> Story {
    let mut database = TestDatabase::new().await;
    let pool = PgPoolOptions::new().max_connections(4).connect_lazy_with(database.options.clone());
    database.options = database.options.application_name("driven");
    let mut story = Story::on(database, settings, None);
    let world = Arc::new(World::new(pool.clone()));
    (story.pool, story.world) = (pool, world);
    story
}

#[tokio::test(flavor = "multi_thread")]
async fn ending_the_engines_sessions_in_a_loop_breaks_nothing() {
    let mut story = named_story(quick()).await;
    story.work();
    let (mut mine, mut others) = (Vec::new(), Vec::new());
    for _ in 0..short_or_slow(20, 200) {
        for _ in 0..3 {
            mine.push(start_patiently(&story, ours()).await);
            others.push(start_patiently(&story, outside()).await);
        }
        sqlx::query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'driven' and datname = current_database()")
            .execute(&story.pool)
            .await
            .unwrap();
    }
    all_end(&story, &mine, &[]).await;
    for run in others {
        assert_eq!(story.ends(run).await, RunState::Succeeded, "the world was there all the time");
    }
    story.end().await;
}

/// The run is asked to cancel while its step is at work. Its last checkpoint therefore changes nothing, and by then the
/// connections are dead on which its driver would ask why.
const A_CANCEL_AND_DEAD_CONNECTIONS: &str = "
    create function ask_to_cancel() returns trigger language plpgsql as $$ begin
        update engine.run set request = 'cancel', cancelling = true where id = new.run;
        insert into engine.act (id, run_id, act, actor, correlation_id)
            values (gen_random_uuid(), new.run, 'cancel', 'operator', 'c-operator');
        return null; end $$;
    create trigger ask_to_cancel after insert on effect for each row execute function ask_to_cancel();
    create function end_idle_sessions() returns trigger language plpgsql as $$ begin
        if current_query() ~ '-- (Checkpoints of runs that turn|As checkpoint.sql)' and not exists (select from moved) then
            perform pg_terminate_backend(pid, 5000) from pg_stat_activity
            where application_name = 'driven' and datname = current_database() and state = 'idle';
        end if;
        return null; end $$;
    create trigger end_idle_sessions after update on engine.run referencing new table as moved
        for each statement execute function end_idle_sessions()";

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_fails_is_not_taken_for_the_loss_of_the_run() {
    // Requests are seldom read from the rows, so that as a rule a driver learns of it by its last write.
    let mut story = named_story(Settings { reap_every: Duration::from_secs(60), ..quick() }).await;
    story.work();
    // Several at once, so that more connections than one are kept.
    let before = futures::future::join_all((0..8).map(|_| story.start([Do::Write("w".into())]))).await;
    for run in before {
        assert_eq!(story.ends(run).await, RunState::Succeeded);
    }
    sqlx::raw_sql(A_CANCEL_AND_DEAD_CONNECTIONS).execute(&story.pool).await.unwrap();
    let about = engine::Start { target: Some("x".into()), ..start() };
    let run = story.start_as([hold("a")], about).await.unwrap().id;
    assert_eq!(story.ends(run).await, RunState::Cancelled, "{}", story.describe(run).await);
    story.gave_everything_back(run).await;
    let over = "drop trigger ask_to_cancel on effect; drop trigger end_idle_sessions on engine.run";
    sqlx::raw_sql(over).execute(&story.pool).await.unwrap();
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_for_all_drives_is_slow_and_not_a_deadlock() {
    let settings = Settings { drive_connections: 1, api_connections: 1, ..quick() };
    let story = Story::with(settings, None).await;
    let mut runs = Vec::new();
    for _ in 0..short_or_slow(60, 500) {
        runs.push(story.start(ours()).await);
    }
    all_end(&story, &runs, &[]).await;
    story.end().await;
}

/// The engine reaches Postgres through a proxy; the story looks on directly.
async fn story_behind(proxy: &Proxy, database: TestDatabase, direct: PgPool, settings: Settings) -> Story {
    let mut database = database;
    database.options = database.options.host("127.0.0.1").port(proxy.port);
    let mut story = Story::on(database, settings, None);
    let world = Arc::new(World::new(direct.clone()));
    (story.pool, story.world) = (direct, world);
    story
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_whose_answer_is_lost_happen_once() {
    let database = TestDatabase::new().await;
    let proxy = Proxy::before(database.options.get_host(), database.options.get_port()).await;
    let direct = database.pool();
    // Answers to claims are lost as well, and each of those counts as a claim that led nowhere.
    let settings = Settings { max_claims: 1000, ..quick() };
    let mut story = story_behind(&proxy, database, direct, settings).await;
    story.work();
    proxy.one_in.store(20, Ordering::Relaxed);
    let (mut mine, mut others) = (Vec::new(), Vec::new());
    for _ in 0..short_or_slow(60, 1000) {
        mine.push(start_patiently(&story, ours()).await);
        others.push(start_patiently(&story, outside()).await);
    }
    all_end(&story, &mine, &[]).await;
    for run in others {
        assert_eq!(story.ends(run).await, RunState::Succeeded, "the world was there all the time");
    }
    assert!(proxy.cuts.load(Ordering::Relaxed) > 10, "the proxy did cut");
    proxy.one_in.store(0, Ordering::Relaxed);
    story.end().await;
}

/// It neither refuses nor resets anything: its machine is gone, and connections to it wait for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_silent_is_given_up_and_work_goes_on_with_the_next() {
    let database = TestDatabase::new().await;
    let proxy = Proxy::before(database.options.get_host(), database.options.get_port()).await;
    let direct = database.pool();
    // What the old machine's sessions hold is theirs until the server gives them up.
    let settings = Settings {
        statement_timeout: Duration::from_secs(1),
        idle_in_transaction: Duration::from_millis(300),
        ..short_lease()
    };
    let mut story = story_behind(&proxy, database, direct, settings).await;
    story.work();
    let mut mine = Vec::new();
    for _ in 0..3 {
        for _ in 0..10 {
            mine.push(start_patiently(&story, ours()).await);
        }
        proxy.falls_silent();
    }
    all_end(&story, &mine, &[]).await;
    story.end().await;
}
