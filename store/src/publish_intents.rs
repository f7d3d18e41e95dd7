//! Permissions to publish. An artifact is registered for one of them, so what lies in a repository without one is nobody's.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
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

/// The permission of the project for this very slot that is named, or else the newest, before all others one that expects
/// these very bytes. It may have expired since: what was pushed in time may be registered later.
pub async fn find_for(
    conn: &mut PgConnection,
    project_id: Uuid,
    slot: &Slot<'_>,
    digest: &str,
    named: Option<Uuid>,
) -> sqlx::Result<Option<PublishIntent>> {
    sqlx::query_as!(
        PublishIntent,
        "select id, repository, tag, source_uri, max_bytes, expected_digest, signing_key_id, expires_at
         from publish_intents
         where project_id = $1 and app_slug = $2 and app_version = $3 and artifact_name = $4
           and coalesce(variant, '') = coalesce($5, '') and artifact_kind = $6 and closed_at is null
           and ($8::uuid is null or id = $8)
         order by expected_digest is not distinct from $7 desc, id desc limit 1",
        project_id,
        slot.app_slug,
        slot.app_version,
        slot.artifact_name,
        slot.variant,
        slot.kind.as_str(),
        digest,
        named
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

/// Lets whoever asked for the upload of the same bytes before go on with it, or find it done: by another address, for as
/// long as is asked now. None where there is no such upload, or it is over.
pub async fn reopen_upload(
    conn: &mut PgConnection,
    new: &NewIntent<'_>,
) -> sqlx::Result<Option<PublishIntent>> {
    let Destination::Store { max_bytes, upload_hash, .. } = new.destination else { return Ok(None) };
    sqlx::query_as!(
        PublishIntent,
        "update publish_intents
         set upload_hash = $8, max_bytes = $9,
             expires_at = greatest(expires_at, engine.now() + make_interval(secs => $10::integer))
         where id = (
             select id from publish_intents i
             where project_id = $1 and app_slug = $2 and app_version = $3 and artifact_name = $4
               and coalesce(variant, '') = coalesce($5, '') and artifact_kind = 'blob' and expected_digest = $6
               and created_by = $7 and (upload_hash is null) = ($8::bytea is null) and expires_at > engine.now()
               and signing_key_id is not distinct from $11
               and not exists (select 1 from app_artifacts a where a.intent_id = i.id)
             order by id desc limit 1 for update)
         returning id, repository, tag, source_uri, max_bytes, expected_digest, signing_key_id, expires_at",
        new.project_id,
        new.slot.app_slug,
        new.slot.app_version,
        new.slot.artifact_name,
        new.slot.variant,
        new.expected_digest,
        new.created_by,
        upload_hash,
        max_bytes,
        new.ttl_seconds,
        new.signing_key_id
    )
    .fetch_optional(conn)
    .await
}

/// Whether anything may be registered for it still; it stays so until the transaction ends.
pub async fn hold_open(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<bool> {
    let open = sqlx::query_scalar!(
        "select id from publish_intents where id = $1 and closed_at is null for share",
        id
    );
    Ok(open.fetch_optional(conn).await?.is_some())
}

/// An intent for which nothing will be registered any more, and where its upload is, if it was for a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    pub intent_id: Uuid,
    pub source_uri: Option<String>,
}

/// Closes those whose time has been over for so long and for which nothing was registered; at most `limit`, with those that
/// were closed before and are still here.
pub async fn close_expired(
    conn: &mut PgConnection,
    keep_seconds: f64,
    limit: i64,
) -> sqlx::Result<Vec<Closed>> {
    sqlx::query_as!(
        Closed,
        "update publish_intents set closed_at = coalesce(closed_at, engine.now()) where id in (
             select id from publish_intents i
             where expires_at < engine.now() - make_interval(secs => $1)
               and not exists (select 1 from app_artifacts a where a.intent_id = i.id)
             order by id limit $2 for update skip locked)
         returning id as intent_id, source_uri",
        keep_seconds,
        limit
    )
    .fetch_all(conn)
    .await
}

/// Whether it is closed and nothing was registered before that. Stays true, because nothing is registered afterwards.
pub async fn is_over(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select 1 from publish_intents i where id = $1 and closed_at is not null
               and not exists (select 1 from app_artifacts a where a.intent_id = i.id)) as "over!""#,
        id
    )
    .fetch_one(conn)
    .await
}

/// Of those that are over.
pub async fn forget(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<u64> {
    let gone = sqlx::query!(
        "delete from publish_intents i where id = any ($1) and closed_at is not null
           and not exists (select 1 from app_artifacts a where a.intent_id = i.id)",
        ids
    )
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}
