//! Permissions to publish. An artifact is registered for one of them, so what lies in a repository without one is nobody's.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::app_artifacts::Slot;

#[derive(Clone, Debug)]
pub struct PublishIntent {
    pub id: Uuid,
    pub repository: Option<String>,
    pub tag: Option<String>,
    pub source_uri: Option<String>,
    pub max_bytes: Option<i64>,
    pub expected_digest: Option<String>,
    pub signing_key_id: Option<Uuid>,
    pub expires_at: DateTime<Utc>,
}

/// Where the bytes go.
pub enum Destination<'a> {
    Repository { name: &'a str, tag: &'a str },
    Store { source_uri: &'a str, max_bytes: i64, upload_hash: Option<&'a [u8]> },
}

pub struct NewIntent<'a> {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub slot: Slot<'a>,
    pub destination: Destination<'a>,
    pub expected_digest: Option<&'a str>,
    pub signing_key_id: Option<Uuid>,
    pub created_by: Uuid,
    pub correlation_id: &'a str,
    pub ttl_seconds: i32,
}

pub async fn insert(conn: &mut PgConnection, new: &NewIntent<'_>) -> sqlx::Result<PublishIntent> {
    let (repository, tag) = match new.destination {
        Destination::Repository { name, tag } => (Some(name), Some(tag)),
        Destination::Store { .. } => (None, None),
    };
    let (source_uri, max_bytes, upload_hash) = match new.destination {
        Destination::Store { source_uri, max_bytes, upload_hash } => {
            (Some(source_uri), Some(max_bytes), upload_hash)
        }
        Destination::Repository { .. } => (None, None, None),
    };
    sqlx::query_as!(
        PublishIntent,
        "insert into publish_intents (id, org_id, project_id, app_slug, app_version, artifact_name, variant, artifact_kind,
                repository, tag, source_uri, max_bytes, expected_digest, signing_key_id, created_by, correlation_id,
                expires_at, upload_hash)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                 engine.now() + make_interval(secs => $17::integer), $18)
         returning id, repository, tag, source_uri, max_bytes, expected_digest, signing_key_id, expires_at",
        new.id,
        new.org_id,
        new.project_id,
        new.slot.app_slug,
        new.slot.app_version,
        new.slot.artifact_name,
        new.slot.variant,
        new.slot.kind.as_str(),
        repository,
        tag,
        source_uri,
        max_bytes,
        new.expected_digest,
        new.signing_key_id,
        new.created_by,
        new.correlation_id,
        new.ttl_seconds,
        upload_hash
    )
    .fetch_one(conn)
    .await
}

/// The newest permission of the project for this very slot. It may have expired since: what was pushed in time may be
/// registered later.
pub async fn newest_for(
    conn: &mut PgConnection,
    project_id: Uuid,
    slot: &Slot<'_>,
) -> sqlx::Result<Option<PublishIntent>> {
    sqlx::query_as!(
        PublishIntent,
        "select id, repository, tag, source_uri, max_bytes, expected_digest, signing_key_id, expires_at
         from publish_intents
         where project_id = $1 and app_slug = $2 and app_version = $3 and artifact_name = $4
           and coalesce(variant, '') = coalesce($5, '') and artifact_kind = $6
         order by id desc limit 1",
        project_id,
        slot.app_slug,
        slot.app_version,
        slot.artifact_name,
        slot.variant,
        slot.kind.as_str()
    )
    .fetch_optional(conn)
    .await
}

/// An upload that may go on: its time is not over and nothing was registered for it.
#[derive(Clone, Debug)]
pub struct OpenUpload {
    pub intent_id: Uuid,
    pub max_bytes: i64,
    pub expected_digest: Option<String>,
}

/// Unknown, expired and used addresses are not told apart.
pub async fn open_upload(conn: &mut PgConnection, upload_hash: &[u8]) -> sqlx::Result<Option<OpenUpload>> {
    sqlx::query_as!(
        OpenUpload,
        r#"select id as intent_id, max_bytes as "max_bytes!", expected_digest from publish_intents i
           where upload_hash = $1 and expires_at > engine.now()
             and not exists (select 1 from app_artifacts a where a.intent_id = i.id)"#,
        upload_hash
    )
    .fetch_optional(conn)
    .await
}
