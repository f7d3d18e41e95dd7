//! Which assertions of nodes have been used: each is good once.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

/// Whether this is the assertion's first use. Two uses at once meet on the row. A few expired rows are forgotten each time.
pub async fn use_up(
    conn: &mut PgConnection,
    node_id: Uuid,
    jti: &str,
    replayable_until: DateTime<Utc>,
) -> sqlx::Result<bool> {
    // Assertions are judged by the machines' clocks, so the wall clock decides here too.
    sqlx::query!(
        "delete from used_node_assertions where (node_id, jti) in (
             select node_id, jti from used_node_assertions where expires_at < clock_timestamp() - interval '1 minute'
             limit 10 for update skip locked)"
    )
    .execute(&mut *conn)
    .await?;
    let taken = sqlx::query!(
        "insert into used_node_assertions (node_id, jti, expires_at) values ($1, $2, $3) on conflict do nothing",
        node_id,
        jti,
        replayable_until
    )
    .execute(conn)
    .await?;
    Ok(taken.rows_affected() == 1)
}
