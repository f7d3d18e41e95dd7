//! Secrets that wait to be fetched once. Fetching deletes: of any number who try at the same moment one gets it.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

/// What a secret opens, for whoever reads the audit log.
#[derive(Clone, Debug, Default)]
pub struct About {
    pub org_id: Option<Uuid>,
    pub project_id: Option<Uuid>,
    /// `kind:id`, as the audit log names things.
    pub target: Option<String>,
    /// Never the secret itself.
    pub told: Option<Value>,
}

pub struct NewSecret<'a> {
    pub token_hash: &'a [u8],
    pub sealed: &'a str,
    pub purpose: &'a str,
    pub ttl_seconds: i32,
    pub about: &'a About,
}

pub struct Taken {
    pub sealed: String,
    pub purpose: String,
    pub org_id: Option<Uuid>,
    pub project_id: Option<Uuid>,
    pub target: Option<String>,
    pub about: Option<Value>,
}

/// What may be known of a secret that is still there.
pub struct Waiting {
    pub purpose: String,
    pub ttl_seconds: i32,
    pub created_at: DateTime<Utc>,
}

pub async fn insert(conn: &mut PgConnection, new: &NewSecret<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into wrapped_secrets (token_hash, sealed, purpose, ttl_seconds, expires_at, org_id, project_id, target, about)
         values ($1, $2, $3, $4, engine.now() + make_interval(secs => $4::integer), $5, $6, $7, $8)",
        new.token_hash,
        new.sealed,
        new.purpose,
        new.ttl_seconds,
        new.about.org_id,
        new.about.project_id,
        new.about.target,
        new.about.told
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn take(conn: &mut PgConnection, token_hash: &[u8]) -> sqlx::Result<Option<Taken>> {
    sqlx::query_as!(
        Taken,
        "delete from wrapped_secrets where token_hash = $1 and expires_at > engine.now()
         returning sealed, purpose, org_id, project_id, target, about",
        token_hash
    )
    .fetch_optional(conn)
    .await
}

pub async fn look(conn: &mut PgConnection, token_hash: &[u8]) -> sqlx::Result<Option<Waiting>> {
    sqlx::query_as!(
        Waiting,
        "select purpose, ttl_seconds, created_at from wrapped_secrets
         where token_hash = $1 and expires_at > engine.now()",
        token_hash
    )
    .fetch_optional(conn)
    .await
}

/// What was handed over of this target, named as the audit log names things, opens for nobody any more.
pub async fn forget_target(conn: &mut PgConnection, target: &str) -> sqlx::Result<()> {
    sqlx::query!("delete from wrapped_secrets where target = $1", target).execute(conn).await?;
    Ok(())
}

/// Those that nobody fetched in time.
pub async fn forget_expired(conn: &mut PgConnection) -> sqlx::Result<u64> {
    let gone =
        sqlx::query!("delete from wrapped_secrets where expires_at <= engine.now()").execute(conn).await?;
    Ok(gone.rows_affected())
}
