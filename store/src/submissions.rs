//! Manifests that app teams sent for review. A team has at most one undecided submission per version; sending other
//! content supersedes it.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, QueryBuilder};
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Submission {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: String,
    pub version: String,
    /// In its normal form.
    pub manifest: Value,
    pub content_digest: String,
    pub status: String,
    pub submitted_by: Uuid,
    pub decided_by: Option<Uuid>,
    pub decided_at: Option<DateTime<Utc>>,
    pub reason: Option<String>,
    pub created_at: DateTime<Utc>,
}

pub struct NewSubmission<'a> {
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: &'a str,
    pub version: &'a str,
    pub manifest: &'a Value,
    pub content_digest: &'a str,
    pub submitted_by: Uuid,
}

/// Takes turns with others who submit the same version from the same project.
pub async fn lock_pending(
    conn: &mut PgConnection,
    project_id: Uuid,
    app_slug: &str,
    version: &str,
) -> sqlx::Result<()> {
    let turn = format!("submission {project_id} {app_slug} {version}");
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended($1, 0))", turn).fetch_one(conn).await?;
    Ok(())
}

/// The submission of this very content that stands, if there is one: the undecided one, or else the one that was approved
/// and is what the catalog has. After a rejection, or when other content came meanwhile, the same content may be sent
/// again: people change their minds.
pub async fn find_same(conn: &mut PgConnection, new: &NewSubmission<'_>) -> sqlx::Result<Option<Submission>> {
    sqlx::query_as!(
        Submission,
        "select id, org_id, project_id, app_slug, version, manifest, content_digest, status, submitted_by, decided_by, decided_at,
                reason, created_at
         from manifest_submissions
         where project_id = $1 and app_slug = $2 and version = $3 and content_digest = $4
             and (status = 'pending' or status = 'approved'
                 and exists (select 1 from app_versions v join apps a on a.id = v.app_id
                             where a.slug = $2 and v.version = $3 and v.content_digest = $4)
                 and not exists (select 1 from manifest_submissions undecided
                                 where undecided.project_id = $1 and undecided.app_slug = $2 and undecided.version = $3
                                     and undecided.status = 'pending'))
         order by id desc limit 1",
        new.project_id,
        new.app_slug,
        new.version,
        new.content_digest
    )
    .fetch_optional(conn)
    .await
}

/// Takes the place of whatever was undecided for the same version.
pub async fn insert(conn: &mut PgConnection, new: &NewSubmission<'_>) -> sqlx::Result<Submission> {
    sqlx::query!(
        "update manifest_submissions set status = 'superseded'
         where project_id = $1 and app_slug = $2 and version = $3 and status = 'pending'",
        new.project_id,
        new.app_slug,
        new.version
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query_as!(
        Submission,
        "insert into manifest_submissions (id, org_id, project_id, app_slug, version, manifest, content_digest, submitted_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         returning id, org_id, project_id, app_slug, version, manifest, content_digest, status, submitted_by, decided_by,
                   decided_at, reason, created_at",
        Uuid::now_v7(),
        new.org_id,
        new.project_id,
        new.app_slug,
        new.version,
        new.manifest,
        new.content_digest,
        new.submitted_by
    )
    .fetch_one(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Submission>> {
    sqlx::query_as!(
        Submission,
        "select id, org_id, project_id, app_slug, version, manifest, content_digest, status, submitted_by, decided_by, decided_at,
                reason, created_at
         from manifest_submissions where id = $1",
        id
    )
    .fetch_optional(conn)
    .await
}

/// Held still until the transaction ends, so that one decision is the last.
pub async fn find_locked(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Submission>> {
    sqlx::query_as!(
        Submission,
        "select id, org_id, project_id, app_slug, version, manifest, content_digest, status, submitted_by, decided_by, decided_at,
                reason, created_at
         from manifest_submissions where id = $1 for update",
        id
    )
    .fetch_optional(conn)
    .await
}

/// What a reader asks for; every field narrows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub project_id: Option<Uuid>,
    pub status: Option<String>,
    pub app_slug: Option<String>,
}

pub async fn list(conn: &mut PgConnection, filter: &Filter, slice: Slice) -> sqlx::Result<Vec<Submission>> {
    let mut query = QueryBuilder::new(
        "select id, org_id, project_id, app_slug, version, manifest, content_digest, status, submitted_by, decided_by, decided_at,
                reason, created_at
         from manifest_submissions where true",
    );
    if let Some(project) = filter.project_id {
        query.push(" and project_id = ").push_bind(project);
    }
    for (column, wanted) in [("status", &filter.status), ("app_slug", &filter.app_slug)] {
        if let Some(wanted) = wanted {
            query.push(" and ").push(column).push(" = ").push_bind(wanted.clone());
        }
    }
    if let Some(after) = slice.after {
        query.push(" and id > ").push_bind(after);
    }
    query.push(" order by id limit ").push_bind(slice.limit);
    query.build_query_as().fetch_all(conn).await
}

/// `approved` or `rejected`. The submission must be locked and undecided.
pub async fn decide(
    conn: &mut PgConnection,
    id: Uuid,
    status: &str,
    by: Uuid,
    reason: Option<&str>,
) -> sqlx::Result<Submission> {
    sqlx::query_as!(
        Submission,
        "update manifest_submissions set status = $2, decided_by = $3, decided_at = engine.now(), reason = $4
         where id = $1 and status = 'pending'
         returning id, org_id, project_id, app_slug, version, manifest, content_digest, status, submitted_by, decided_by,
                   decided_at, reason, created_at",
        id,
        status,
        by,
        reason
    )
    .fetch_one(conn)
    .await
}
