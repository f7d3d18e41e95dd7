//! Which assertions have been used: each is good once.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

/// Whether this is the assertion's first use. Two uses at once meet on the row: the later one waits for the earlier
/// transaction, and is refused if that commits.
pub async fn use_up(
    conn: &mut PgConnection,
    service_account_id: Uuid,
    jti: &str,
    replayable_until: DateTime<Utc>,
) -> sqlx::Result<bool> {
    forget_expired(conn).await?;
    let taken = sqlx::query!(
        "insert into used_assertions (service_account_id, jti, expires_at) values ($1, $2, $3) on conflict do nothing",
        service_account_id,
        jti,
        replayable_until
    )
    .execute(conn)
    .await?;
    Ok(taken.rows_affected() == 1)
}

/// A few at a time, so that the table stays small without anybody having to sweep it. Assertions are judged by the
/// machines' clocks, so the wall clock decides here too.
async fn forget_expired(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from used_assertions where (service_account_id, jti) in (
             select service_account_id, jti from used_assertions
             where expires_at < clock_timestamp() - interval '1 minute'
             limit 10 for update skip locked)"
    )
    .execute(conn)
    .await?;
    Ok(())
}
