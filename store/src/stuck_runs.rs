//! Runs that were seen not to advance, and whether it was told: once for each time and reason.

use sqlx::PgConnection;
use uuid::Uuid;

/// A run that does not advance now.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub run_id: Uuid,
    pub cause: &'static str,
    /// Whether it stays so until somebody acts; else it is told only once it was seen for a while.
    pub settled: bool,
}

/// Remembers these, and answers those that must be told now.
pub async fn look(conn: &mut PgConnection, seen: &[Seen], patience_seconds: f64) -> sqlx::Result<Vec<Uuid>> {
    let ids: Vec<Uuid> = seen.iter().map(|one| one.run_id).collect();
    let causes: Vec<String> = seen.iter().map(|one| one.cause.to_owned()).collect();
    let settled: Vec<Uuid> = seen.iter().filter(|one| one.settled).map(|one| one.run_id).collect();
    sqlx::query!(
        "insert into stuck_runs as s (run_id, cause) select * from unnest($1::uuid[], $2::text[])
         on conflict (run_id) do update set cause = excluded.cause, last_seen_at = engine.now(),
             seen_at = case when s.cause = excluded.cause then s.seen_at else engine.now() end,
             told_at = case when s.cause = excluded.cause then s.told_at end",
        &ids,
        &causes
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query_scalar!(
        "update stuck_runs set told_at = engine.now()
         where run_id = any($1) and told_at is null
           and (run_id = any($2) or seen_at <= engine.now() - make_interval(secs => $3))
         returning run_id",
        &ids,
        &settled,
        patience_seconds
    )
    .fetch_all(conn)
    .await
}

/// Forgets what was not seen for so long: should it stick again, it is told again.
pub async fn forget(conn: &mut PgConnection, unseen_seconds: f64) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from stuck_runs where last_seen_at < engine.now() - make_interval(secs => $1)",
        unseen_seconds
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Where the last look stopped; `None` where it saw everything.
pub async fn stopped_at(conn: &mut PgConnection) -> sqlx::Result<Option<Uuid>> {
    let before =
        sqlx::query_scalar!("select before from stuck_run_looks for update").fetch_optional(conn).await?;
    Ok(before.flatten())
}

pub async fn stop_at(conn: &mut PgConnection, before: Option<Uuid>) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into stuck_run_looks (before) values ($1) on conflict (one) do update set before = excluded.before",
        before
    )
    .execute(conn)
    .await
    .map(drop)
}
