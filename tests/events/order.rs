//! One order per project: no gaps, and causes before their effects, whoever commits when and however many number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde_json::json;
use sqlx::PgPool;
use store::outbox;
use uuid::Uuid;
use workflows::sequencer::{Hints, Sequencer, number_all};

use super::{event, tell};
use crate::support::story::Story;

async fn order(pool: &PgPool) -> Vec<(i64, String)> {
    sqlx::query_as("select seq, subject from outbox where seq is not null order by seq")
        .fetch_all(pool)
        .await
        .unwrap()
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
async fn a_sequencer_that_waited_for_another_sees_what_it_numbered() {
    let story = Story::new().await;
    for subject in ["a", "b", "c"] {
        tell(&story.pool, subject).await;
    }
    let project = crate::support::realm::EXAMPLE;
    let mut first = story.pool.begin().await.unwrap();
    let found: i64 = outbox::number(&mut first, project, 2).await.unwrap().iter().map(|one| one.events).sum();
    assert_eq!(found, 2);
    let pool = story.engine.pool().clone();
    let second = tokio::spawn(async move { number_all(&pool).await });
    story
        .until_true(
            "the second waits for the first",
            "select exists (select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')
             and $1::uuid is not null and $2::text[] is not null",
            Uuid::nil(),
            &[],
        )
        .await;
    first.commit().await.unwrap();
    assert_eq!(second.await.unwrap().unwrap(), 1);
    let subjects: Vec<(i64, String)> = order(&story.pool).await;
    assert_eq!(subjects, [(1, "a".to_owned()), (2, "b".to_owned()), (3, "c".to_owned())]);
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
