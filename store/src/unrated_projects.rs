//! Projects whose usage could not be rated: set aside for a while, so that everybody else's is. Each is tried again by
//! itself, after a minute at first and twice as late each time, within an hour.

use sqlx::PgConnection;
use uuid::Uuid;

/// Answers how often it could not be rated by now.
pub async fn set_aside(conn: &mut PgConnection, project: Uuid, reason: &str) -> sqlx::Result<i32> {
    sqlx::query_scalar!(
        "insert into unrated_projects as u (project_id, reason, retry_at)
         values ($1, left($2, 1000), engine.now() + interval '1 minute')
         on conflict (project_id) do update set reason = excluded.reason, tries = u.tries + 1,
             retry_at = engine.now() + least(interval '1 hour', interval '1 minute' * 2 ^ least(u.tries, 10))
         returning tries",
        project,
        reason
    )
    .fetch_one(conn)
    .await
}

/// It was rated.
pub async fn clear(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from unrated_projects where project_id = $1", project).execute(conn).await.map(drop)
}
