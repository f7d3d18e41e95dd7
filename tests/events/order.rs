//! One order per project: no gaps, and causes before their effects, whoever commits when and however many number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use activities::Env;
use domain::EventType;
use domain::event::NewEvent;
use engine::{RunState, Start, Workers};
use serde_json::json;
use sqlx::PgPool;
use store::outbox;
use uuid::Uuid;
use workflows::reconcilers::old_events::ForgetEvents;
use workflows::sequencer::{Hints, Sequencer, number_all};

use super::{event, tell};
use crate::support::realm::{DEMO, EXAMPLE};
use crate::support::story::Story;

async fn order(pool: &PgPool) -> Vec<(i64, String)> {
    sqlx::query_as("select seq, subject from outbox where seq is not null order by seq")
        .fetch_all(pool)
        .await
        .unwrap()
}

/// For what somebody else holds, by a statement that names this.
pub async fn somebody_waits(story: &Story, of: &str) {
    story
        .until_true(
            &format!("a statement that names {of} waits for a lock"),
            "select exists (select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
                 and strpos(query, $2[1]) > 0) and $1::uuid is not null",
            Uuid::nil(),
            &[of],
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_took_its_place_first_and_committed_last_is_told_last() {
    let story = Story::new().await;
    let mut slow = story.pool.begin().await.unwrap();
    outbox::insert(&mut slow, &event("slow", &json!({}))).await.unwrap();
    tell(&story.pool, "quick").await;
    assert_eq!(number_all(story.engine.pool()).await.unwrap(), 1);
    // A reader who has seen the first number must not find anything new before it.
    assert_eq!(order(&story.pool).await, [(1, "quick".to_owned())]);
    slow.commit().await.unwrap();
    number_all(story.engine.pool()).await.unwrap();
    assert_eq!(order(&story.pool).await, [(1, "quick".to_owned()), (2, "slow".to_owned())]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_whose_counter_is_held_keeps_no_other_from_its_numbers() {
    let story = Story::new().await;
    let projects = [1, 2, 3].map(Uuid::from_u128);
    for held in projects {
        for project in projects {
            let staged = EventType::VersionStaged;
            let told = NewEvent::of_project((DEMO, project), staged, "v", &json!({}), "c-order");
            outbox::insert(&mut story.pool.acquire().await.unwrap(), &told).await.unwrap();
        }
        let mut holder = story.pool.begin().await.unwrap();
        let hold = "insert into event_counters (project_id) values ($1)
            on conflict (project_id) do update set last_seq = event_counters.last_seq";
        sqlx::query(hold).bind(held).execute(&mut *holder).await.unwrap();
        number_all(story.engine.pool()).await.unwrap();
        let waiting = "select distinct project_id from outbox where seq is null";
        let waiting: Vec<Uuid> = sqlx::query_scalar(waiting).fetch_all(&story.pool).await.unwrap();
        assert_eq!(waiting, [held], "whichever of them is held");
        holder.rollback().await.unwrap();
    }
    assert_eq!(number_all(story.engine.pool()).await.unwrap(), 1);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn old_events_go_project_by_project_and_one_that_is_held_keeps_no_other() {
    let story = Story::idle(crate::support::story::quick(), None).await;
    sqlx::raw_sql(
        "insert into event_counters select p.id, 3000, 0
             from unnest(array['00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002']::uuid[]) p(id);
         insert into outbox (id, project_id, seq, type, subject, data, correlation_id, at)
             select gen_random_uuid(), project_id, n, 'apps.version.staged', 'v', '{}', 'c', engine.now() - interval '31 days'
             from event_counters, generate_series(1, 3000) n",
    )
    .execute(&story.pool)
    .await
    .unwrap();
    let env = Arc::new(Env::new(story.engine.clone()));
    let workers = Workers::start(&story.engine, env, workflows::registry());
    let forget = async || -> serde_json::Value {
        let options = Start { correlation_id: "c-night".into(), ..Start::default() };
        let run = story.start_workflow(&ForgetEvents {}, options).await.unwrap();
        assert_eq!(story.ends(run.id).await, RunState::Succeeded);
        sqlx::query_scalar("select output from engine.run where id = $1")
            .bind(run.id)
            .fetch_one(&story.pool)
            .await
            .unwrap()
    };
    let mut holder = story.pool.begin().await.unwrap();
    sqlx::query("select from event_counters where project_id = $1 for update")
        .bind(Uuid::from_u128(1))
        .execute(&mut *holder)
        .await
        .unwrap();
    assert_eq!(forget().await, json!({ "forgotten": 3000, "projects_held_up": 1 }));
    holder.rollback().await.unwrap();
    assert_eq!(forget().await, json!({ "forgotten": 3000, "projects_held_up": 0 }));
    workers.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_on_which_nothing_can_be_forgotten_says_why_and_goes_on_by_itself() {
    let story = Story::idle(crate::support::story::quick(), None).await;
    let env = Arc::new(Env::new(story.engine.clone()));
    let workers = Workers::start(&story.engine, env, workflows::registry());
    let change = async |sql: &'static str| _ = sqlx::raw_sql(sql).execute(&story.pool).await.unwrap();
    change("alter table event_counters rename to away").await;
    let options = Start { correlation_id: "c-night".into(), ..Start::default() };
    let run = story.start_workflow(&ForgetEvents {}, options).await.unwrap().id;
    while story.until(run, &[RunState::Waiting, RunState::Paused]).await != RunState::Paused {
        story.advance(Duration::from_secs(60)).await;
    }
    assert_eq!(story.cause(run).await.as_deref(), Some("retries_exhausted"));
    change("alter table away rename to event_counters").await;
    story.advance(Duration::from_secs(301)).await;
    assert_eq!(story.ends(run).await, RunState::Succeeded, "{}", story.describe(run).await);
    workers.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sequencer_that_waited_for_another_sees_what_it_numbered() {
    let story = Story::new().await;
    for subject in ["a", "b", "c"] {
        tell(&story.pool, subject).await;
    }
    let mut first = story.pool.begin().await.unwrap();
    let found: i64 = outbox::number(&mut first, EXAMPLE, 2).await.unwrap().iter().map(|one| one.events).sum();
    assert_eq!(found, 2);
    let pool = story.engine.pool().clone();
    let second = tokio::spawn(async move { number_all(&pool).await });
    somebody_waits(&story, "event_counters").await;
    first.commit().await.unwrap();
    assert_eq!(second.await.unwrap().unwrap(), 1);
    let subjects: Vec<(i64, String)> = order(&story.pool).await;
    assert_eq!(subjects, [(1, "a".to_owned()), (2, "b".to_owned()), (3, "c".to_owned())]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_gets_its_number_while_old_ones_go_stays() {
    let story = Story::new().await;
    tell(&story.pool, "old").await;
    number_all(story.engine.pool()).await.unwrap();
    story.advance(Duration::from_secs(31 * 24 * 3600)).await;
    tell(&story.pool, "young").await;
    let mut numbering = story.pool.begin().await.unwrap();
    outbox::number(&mut numbering, EXAMPLE, 100).await.unwrap();
    let pool = story.pool.clone();
    let month = 30.0 * 24.0 * 3600.0;
    let forgetting = tokio::spawn(async move {
        let mut tx = pool.begin().await.unwrap();
        let gone = outbox::forget(&mut tx, EXAMPLE, month, 1000).await.unwrap();
        tx.commit().await.unwrap();
        gone
    });
    somebody_waits(&story, "event_counters").await;
    numbering.commit().await.unwrap();
    assert_eq!(forgetting.await.unwrap(), 1);
    assert_eq!(order(&story.pool).await, [(2, "young".to_owned())]);
    story.end().await;
}

/// Writers who know what had happened when they began, and three sequencers at once: afterwards every event stands behind
/// all that its writer knew.
#[tokio::test(flavor = "multi_thread")]
async fn effects_come_after_their_causes_without_gaps_under_many_writers_and_sequencers() {
    const WRITERS: usize = 8;
    const EACH: usize = 40;
    let story = Story::new().await;
    let sequencers: Vec<Sequencer> =
        (0..3).map(|_| Sequencer::start(&story.engine, &Hints::default())).collect();
    let committed: Arc<Mutex<Vec<Uuid>>> = Arc::default();
    let writers = (0..WRITERS).map(|_| {
        let (pool, committed) = (story.engine.pool().clone(), Arc::clone(&committed));
        tokio::spawn(async move {
            let mut knew = Vec::new();
            for _ in 0..EACH {
                let causes = committed.lock().unwrap().clone();
                let mut tx = pool.begin().await.unwrap();
                let id = outbox::insert(&mut tx, &event("one", &json!({}))).await.unwrap();
                // Others commit while this one is still open.
                tokio::task::yield_now().await;
                tx.commit().await.unwrap();
                committed.lock().unwrap().push(id);
                knew.push((id, causes));
            }
            knew
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut knew = Vec::new();
    for writer in writers {
        knew.extend(writer.await.unwrap());
    }
    for sequencer in sequencers {
        sequencer.stop().await;
    }
    number_all(story.engine.pool()).await.unwrap();

    let numbers: Vec<(Uuid, i64)> =
        sqlx::query_as("select id, seq from outbox order by seq").fetch_all(&story.pool).await.unwrap();
    let all: Vec<i64> = numbers.iter().map(|(_, seq)| *seq).collect();
    assert_eq!(all, (1..=(WRITERS * EACH) as i64).collect::<Vec<_>>());
    let seq: HashMap<Uuid, i64> = numbers.into_iter().collect();
    for (effect, causes) in knew {
        for cause in causes {
            assert!(seq[&cause] < seq[&effect], "{cause} was committed before {effect} began");
        }
    }
    story.end().await;
}
