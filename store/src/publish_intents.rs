//! Permissions to publish. An artifact is registered for one of them, so what lies in a repository without one is nobody's.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub struct PublishIntent {
    pub id: Uuid,
    pub project_id: Uuid,
    pub app_slug: String,
    pub app_version: String,
    pub artifact_name: String,
    pub variant: Option<String>,
    pub artifact_kind: String,
    pub repository: Option<String>,
    pub tag: Option<String>,
    pub source_uri: Option<String>,
    pub max_bytes: Option<i64>,
    pub expected_digest: Option<String>,
    pub signing_key_id: Option<Uuid>,
    pub expires_at: DateTime<Utc>,
}

pub struct NewIntent<'a> {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: &'a str,
    pub app_version: &'a str,
    pub artifact_name: &'a str,
    pub variant: Option<&'a str>,
    pub artifact_kind: &'a str,
    pub repository: Option<&'a str>,
    pub tag: Option<&'a str>,
    pub source_uri: Option<&'a str>,
    pub max_bytes: Option<i64>,
    pub expected_digest: Option<&'a str>,
    pub signing_key_id: Option<Uuid>,
    pub created_by: Uuid,
    pub correlation_id: &'a str,
    pub ttl_seconds: i32,
}

pub async fn insert(conn: &mut PgConnection, new: &NewIntent<'_>) -> sqlx::Result<PublishIntent> {
    sqlx::query_as!(
        PublishIntent,
        "insert into publish_intents (id, org_id, project_id, app_slug, app_version, artifact_name, variant, artifact_kind,
                repository, tag, source_uri, max_bytes, expected_digest, signing_key_id, created_by, correlation_id,
                expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                 engine.now() + make_interval(secs => $17::integer))
         returning id, project_id, app_slug, app_version, artifact_name, variant, artifact_kind, repository, tag, source_uri,
                max_bytes, expected_digest, signing_key_id, expires_at",
        new.id,
        new.org_id,
        new.project_id,
        new.app_slug,
        new.app_version,
        new.artifact_name,
        new.variant,
        new.artifact_kind,
        new.repository,
        new.tag,
        new.source_uri,
        new.max_bytes,
        new.expected_digest,
        new.signing_key_id,
        new.created_by,
        new.correlation_id,
        new.ttl_seconds
    )
    .fetch_one(conn)
    .await
}

/// The newest permission of the project for this very place. It may have expired since: what was pushed in time may be
/// registered later.
pub async fn newest_for(
    conn: &mut PgConnection,
    project_id: Uuid,
    app_slug: &str,
    app_version: &str,
    artifact_name: &str,
    variant: Option<&str>,
    kind: &str,
) -> sqlx::Result<Option<PublishIntent>> {
    sqlx::query_as!(
        PublishIntent,
        "select id, project_id, app_slug, app_version, artifact_name, variant, artifact_kind, repository, tag, source_uri,
                max_bytes, expected_digest, signing_key_id, expires_at
         from publish_intents
         where project_id = $1 and app_slug = $2 and app_version = $3 and artifact_name = $4
           and coalesce(variant, '') = coalesce($5, '') and artifact_kind = $6
         order by id desc limit 1",
        project_id,
        app_slug,
        app_version,
        artifact_name,
        variant,
        kind
    )
    .fetch_optional(conn)
    .await
}
