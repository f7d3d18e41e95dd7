//! What the platform tells the world: in one order, to everybody who follows, and traced back to who set it off.

mod lifecycle;
mod list;
mod nats;
mod newer;
pub mod order;
mod stream;
mod trace;
mod webhooks;

use domain::EventType;
use domain::event::NewEvent;
use serde_json::{Value, json};
use sqlx::PgPool;
use store::outbox;
use uuid::Uuid;
use workflows::sequencer::{Hints, Sequencer};

use crate::http::Http;
use crate::support::realm::{DEMO, EXAMPLE};
use crate::support::story::Story;

/// A platform whose events get their numbers.
pub async fn sequenced(story: &Story) -> (Http, Sequencer) {
    let hints = Hints::default();
    let sequencer = Sequencer::start(&story.engine, &hints);
    (Http::with(story, |state| state.hinting(hints)).await, sequencer)
}

fn event(subject: &str, data: &Value) -> NewEvent {
    NewEvent::of_project((DEMO, EXAMPLE), EventType::VersionStaged, subject, data, "c-events")
}

/// What a server of a newer release tells, whose types this one does not know.
pub async fn tell_newer(pool: &PgPool, project: Uuid, subject: &str) {
    sqlx::query(
        "insert into outbox (id, project_id, org_id, type, subject, data, correlation_id)
         values ($1, $2, $3, 'apps.instance.dreamt', $4, '{}', 'c-newer')",
    )
    .bind(Uuid::now_v7())
    .bind(project)
    .bind(DEMO)
    .bind(subject)
    .execute(pool)
    .await
    .unwrap();
}

/// Tells one event in a transaction of its own.
pub async fn tell(pool: &PgPool, subject: &str) -> Uuid {
    let mut tx = pool.begin().await.unwrap();
    let id = outbox::insert(&mut tx, &event(subject, &json!({}))).await.unwrap();
    tx.commit().await.unwrap();
    id
}
