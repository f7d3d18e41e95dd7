//! The outbox: events, appended in the transaction of the change they tell of. A change that rolls back tells nothing.
//! They are numbered after that, project by project, and read by their numbers.

mod forget;
mod number;
mod read;

pub use forget::{forget, outdated};
pub use number::{Numbered, number, waiting};
pub use read::{Extent, Filter, extent, progress, told};

use chrono::{DateTime, Utc};
use domain::event::{CloudEvent, NewEvent, Thread};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

/// Last in a transaction: domain rows and run rows are locked before events are written.
pub async fn insert(conn: &mut PgConnection, event: &NewEvent) -> sqlx::Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query!(
        "insert into outbox (id, project_id, org_id, type, subject, data, correlation_id, traceparent)
         values ($1, $2, $3, $4, $5, $6, $7, $8)",
        id,
        event.project_id,
        event.org_id,
        event.kind.as_str(),
        event.subject,
        event.data(),
        event.correlation_id,
        event.traceparent
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// An event as the table keeps it.
#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    project_id: Uuid,
    org_id: Option<Uuid>,
    seq: Option<i64>,
    kind: String,
    subject: String,
    data: Value,
    correlation_id: String,
    traceparent: Option<String>,
    at: DateTime<Utc>,
}

/// The type is passed on as it is: a newer release may have written it, and those who follow are not to wait for this one.
fn shown(row: Row) -> CloudEvent {
    let owner = (row.org_id.unwrap_or_default(), row.project_id);
    let thread = Thread { correlation_id: &row.correlation_id, traceparent: row.traceparent.as_deref() };
    let event = NewEvent::of_project(owner, row.kind, &row.subject, &row.data, thread);
    CloudEvent::new(row.id, row.at, event).numbered(row.seq)
}
