//! What is read of runs outside the engine, which keeps them.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub struct RunError {
    pub code: String,
    pub message: String,
}

/// What a run turned back with by itself; it is there before anything is undone. None where somebody cancelled it: a pause before that
/// may have left its own.
pub async fn error(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<Option<RunError>> {
    sqlx::query_as!(
        RunError,
        r#"select error ->> 'code' as "code!", error ->> 'message' as "message!" from engine.run
           where id = $1 and error is not null and not cancelling"#,
        run
    )
    .fetch_optional(conn)
    .await
}

/// Whether a run that acted on this target has ended since then.
pub async fn acted_on_since(
    conn: &mut PgConnection,
    target: &str,
    then: Option<DateTime<Utc>>,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from engine.run where target = $1 and finished_at >= $2) as "acted!""#,
        target,
        then
    )
    .fetch_one(conn)
    .await
}
