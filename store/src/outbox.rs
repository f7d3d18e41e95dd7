//! The outbox: events, appended in the transaction of the change they tell of. A change that rolls back tells nothing.

use domain::event::NewEvent;
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
