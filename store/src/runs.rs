//! What is read of runs outside the engine, which keeps them.

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
