//! Events are told with the change they belong to, and stay as they were told.

use domain::EventType;
use domain::event::NewEvent;
use serde_json::json;
use sqlx::Executor;
use store::outbox;
use uuid::Uuid;

use crate::support::realm::{DEMO, EXAMPLE};
use crate::support::story::Story;

fn staged(subject: &str) -> NewEvent {
    let data = json!({ "slug": "hello", "private_key": "hush" });
    NewEvent::of_project((DEMO, EXAMPLE), EventType::VersionStaged, subject, &data, "c-outbox")
}

async fn told(story: &Story) -> Vec<(String, serde_json::Value, Option<i64>)> {
    sqlx::query_as("select subject, data, seq from outbox order by pos").fetch_all(&story.pool).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_rolls_back_tells_nothing() {
    let story = Story::new().await;
    let mut tx = story.pool.begin().await.unwrap();
    outbox::insert(&mut tx, &staged("undone")).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = story.pool.begin().await.unwrap();
    outbox::insert(&mut tx, &staged("done")).await.unwrap();
    tx.commit().await.unwrap();
    let public = json!({ "slug": "hello", "private_key": "[redacted]" });
    assert_eq!(told(&story).await, [("done".to_owned(), public, None)]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_gets_its_number_once_and_changes_no_more() {
    let story = Story::new().await;
    let id: Uuid = outbox::insert(&mut story.pool.acquire().await.unwrap(), &staged("v1")).await.unwrap();
    for (change, allowed) in [
        ("update outbox set subject = 'v2'", false),
        ("update outbox set data = '{}', seq = 1", false),
        ("update outbox set seq = 1", true),
        ("update outbox set seq = 2", false),
    ] {
        assert_eq!(story.pool.execute(change).await.is_ok(), allowed, "{change}");
    }
    let seq: Option<i64> = sqlx::query_scalar("select seq from outbox where id = $1")
        .bind(id)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert_eq!(seq, Some(1));
    story.end().await;
}
