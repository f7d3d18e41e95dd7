//! Projects whose usage could not be rated: set aside for a while, so that everybody else's is. Each is tried again by
//! itself, after a minute at first and twice as late each time, within an hour. Those of which only a part could not be are
//! told too, and go on with the rest.

use sqlx::PgConnection;
use uuid::Uuid;

/// Answers how often it could not be rated by now.
pub async fn set_aside(conn: &mut PgConnection, project: Uuid, reason: &str) -> sqlx::Result<i32> {
    sqlx::query_scalar!(
        "insert into unrated_projects as u (project_id, reason, retry_at)
         values ($1, left($2, 1000), engine.now() + interval '1 minute')
         on conflict (project_id) do update set reason = excluded.reason, tries = u.tries + 1, in_part = false,
             retry_at = engine.now() + least(interval '1 hour', interval '1 minute' * 2 ^ least(u.tries, 10))
         returning tries",
        project,
        reason
    )
    .fetch_one(conn)
    .await
}

/// A part of it could not be rated, and waits with its windows. Answers how often that happened by now.
pub async fn note(conn: &mut PgConnection, project: Uuid, reason: &str) -> sqlx::Result<i32> {
    sqlx::query_scalar!(
        "insert into unrated_projects as u (project_id, reason, in_part, retry_at)
         values ($1, left($2, 1000), true, engine.now())
         on conflict (project_id) do update set reason = excluded.reason, tries = u.tries + 1, in_part = true,
             retry_at = excluded.retry_at
         returning tries",
        project,
        reason
    )
    .fetch_one(conn)
    .await
}

/// It was rated. As long as a part of it waits, that stays told.
pub async fn clear(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from unrated_projects where project_id = $1
           and not exists (select from open_windows o where o.project_id = $1 and o.tries > 0)",
        project
    )
    .execute(conn)
    .await
    .map(drop)
}
