//! Cleans away events that are old, in the order in which they were told. The counter remembers how far, so that who
//! resumes before it is told that something is missing.

use sqlx::PgConnection;
use uuid::Uuid;

/// The projects whose oldest event is older than so many seconds.
pub async fn outdated(conn: &mut PgConnection, seconds: f64) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select c.project_id from event_counters c join outbox o on o.project_id = c.project_id and o.seq = c.forgotten + 1
         where o.at < (select engine.now()) - make_interval(secs => $1)",
        seconds
    )
    .fetch_all(conn)
    .await
}

/// Forgets up to `most` events of the project, the oldest first, and stops at the first that is younger than so many
/// seconds. Answers how many are gone.
///
/// The counter is held by a statement of its own: the next sees the events as they are once nobody else numbers them. In
/// one statement an event that was numbered meanwhile would have no number yet, and be taken for one that is gone.
pub async fn forget(conn: &mut PgConnection, project: Uuid, seconds: f64, most: i64) -> sqlx::Result<u64> {
    sqlx::query!("select from event_counters where project_id = $1 for update", project)
        .execute(&mut *conn)
        .await?;
    let reach = sqlx::query_scalar!(
        "update event_counters c set forgotten = coalesce(
             (select min(seq) - 1 from outbox where project_id = $1
                 and at >= (select engine.now()) - make_interval(secs => $2)
                 and seq between c.forgotten + 1 and c.forgotten + $3),
             least(c.last_seq, c.forgotten + $3))
         where project_id = $1 returning forgotten",
        project,
        seconds,
        most
    )
    .fetch_optional(&mut *conn)
    .await?;
    let gone = sqlx::query!("delete from outbox where project_id = $1 and seq <= $2", project, reach)
        .execute(conn)
        .await?;
    Ok(gone.rows_affected())
}
