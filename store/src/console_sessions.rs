//! Sessions of the console: each is known by the digest of a secret that only the browser has, and ends by the
//! database's clock.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;
use uuid::Uuid;

/// A session that has not ended, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub user_id: Uuid,
    pub issuer: String,
    pub subject: String,
    pub expires_at: DateTime<Utc>,
}

pub async fn insert(
    conn: &mut PgConnection,
    digest: &[u8; 32],
    user_id: Uuid,
    lifetime: TimeDelta,
) -> sqlx::Result<()> {
    forget_expired(conn, 10).await?;
    let lifetime =
        PgInterval { months: 0, days: 0, microseconds: lifetime.num_microseconds().unwrap_or(i64::MAX) };
    sqlx::query!(
        "insert into console_sessions (digest, user_id, expires_at) values ($1, $2, engine.now() + $3)",
        digest,
        user_id,
        lifetime
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn find(conn: &mut PgConnection, digest: &[u8; 32]) -> sqlx::Result<Option<Session>> {
    sqlx::query_as!(
        Session,
        "select s.user_id, u.issuer, u.subject, s.expires_at
         from console_sessions s join users u on u.id = s.user_id
         where s.digest = $1 and s.expires_at > engine.now()",
        digest
    )
    .fetch_optional(conn)
    .await
}

/// Whose session this ended, if it was one.
pub async fn delete(conn: &mut PgConnection, digest: &[u8; 32]) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!("delete from console_sessions where digest = $1 returning user_id", digest)
        .fetch_optional(conn)
        .await
}

/// At most so many. Whoever adds one takes a few away, so that the table stays small between two sweeps.
pub async fn forget_expired(conn: &mut PgConnection, most: i64) -> sqlx::Result<u64> {
    let gone = sqlx::query!(
        "delete from console_sessions where digest in (
             select digest from console_sessions where expires_at <= (select engine.now()) limit $1 for update skip locked)",
        most
    )
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}
