//! Permissions to pull one artifact. The credential of the same id does the rest.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

pub struct NewPull<'a> {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub artifact_id: Uuid,
    pub repository: &'a str,
    pub digest: &'a str,
    /// Whom it is for; without a node, whoever asked.
    pub node_id: Option<Uuid>,
    /// Everybody who is signed in may ask for it.
    pub of_release: bool,
    pub created_by: Uuid,
    pub correlation_id: &'a str,
    pub ttl_seconds: i32,
}

/// Answers when it expires. Asked for again, it is the same one.
pub async fn insert(conn: &mut PgConnection, new: &NewPull<'_>) -> sqlx::Result<DateTime<Utc>> {
    sqlx::query_scalar!(
        "insert into pull_intents (id, org_id, project_id, artifact_id, repository, digest, node_id, created_by,
                correlation_id, expires_at, of_release)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, engine.now() + make_interval(secs => $10::integer), $11)
         on conflict (id) do update set expires_at = pull_intents.expires_at
         returning expires_at",
        new.id,
        new.org_id,
        new.project_id,
        new.artifact_id,
        new.repository,
        new.digest,
        new.node_id,
        new.created_by,
        new.correlation_id,
        new.ttl_seconds,
        new.of_release
    )
    .fetch_one(conn)
    .await
}

/// Those whose time has been over for so long.
pub async fn forget_expired(conn: &mut PgConnection, keep_seconds: f64) -> sqlx::Result<u64> {
    let gone = sqlx::query!(
        "delete from pull_intents where expires_at < engine.now() - make_interval(secs => $1)",
        keep_seconds
    )
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}
