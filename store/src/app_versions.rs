//! Versions of apps. A status changes only by [`advance`]: compare-and-set along the table of legal moves. Content changes
//! only while the version is a draft; the database refuses everything else.

use chrono::{DateTime, Utc};
use domain::canary::Canary;
use domain::version_status::{VersionAction, VersionStatus};
use serde_json::Value;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::{Slice, apps, parsed};

#[derive(Clone, Debug)]
pub struct AppVersion {
    pub id: Uuid,
    pub app_id: Uuid,
    pub slug: String,
    pub owner_org_id: Uuid,
    pub owner_project_id: Uuid,
    pub version: String,
    pub status: VersionStatus,
    pub status_reason: Option<String>,
    pub evidence: Option<Value>,
    /// In its normal form.
    pub manifest: Value,
    pub content_digest: String,
    pub canary: Option<Canary>,
    pub canary_round: i32,
    pub registered_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl AppVersion {
    /// Organization and project, as events and runs want them.
    pub fn owner(&self) -> (Uuid, Uuid) {
        (self.owner_org_id, self.owner_project_id)
    }
}

/// As the database has it; the words are checked there.
struct Row {
    id: Uuid,
    app_id: Uuid,
    slug: String,
    owner_org_id: Uuid,
    owner_project_id: Uuid,
    version: String,
    status: String,
    status_reason: Option<String>,
    evidence: Option<Value>,
    manifest: Value,
    content_digest: String,
    canary: Option<Json<Canary>>,
    canary_round: i32,
    registered_by: Uuid,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl TryFrom<Row> for AppVersion {
    type Error = sqlx::Error;

    fn try_from(row: Row) -> sqlx::Result<AppVersion> {
        Ok(AppVersion {
            id: row.id,
            app_id: row.app_id,
            slug: row.slug,
            owner_org_id: row.owner_org_id,
            owner_project_id: row.owner_project_id,
            version: row.version,
            status: parsed(&row.status)?,
            status_reason: row.status_reason,
            evidence: row.evidence,
            manifest: row.manifest,
            content_digest: row.content_digest,
            canary: row.canary.map(|canary| canary.0),
            canary_round: row.canary_round,
            registered_by: row.registered_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

pub struct NewVersion<'a> {
    pub app_id: Uuid,
    pub version: &'a str,
    pub manifest: &'a Value,
    pub content_digest: &'a str,
    pub registered_by: Uuid,
}

/// A draft. The app must be locked, and must not have the version yet.
pub async fn insert(conn: &mut PgConnection, new: &NewVersion<'_>) -> sqlx::Result<Uuid> {
    let id = Uuid::now_v7();
    sqlx::query!(
        "insert into app_versions (id, app_id, version, manifest, content_digest, registered_by)
         values ($1, $2, $3, $4, $5, $6)",
        id,
        new.app_id,
        new.version,
        new.manifest,
        new.content_digest,
        new.registered_by
    )
    .execute(&mut *conn)
    .await?;
    apps::refresh(conn, new.app_id).await?;
    Ok(id)
}

/// Other content for a version that is still a draft. The app must be locked.
pub async fn replace_draft(conn: &mut PgConnection, id: Uuid, new: &NewVersion<'_>) -> sqlx::Result<bool> {
    let replaced = sqlx::query!(
        "update app_versions set manifest = $2, content_digest = $3, registered_by = $4, updated_at = engine.now()
         where id = $1 and status = 'draft'",
        id,
        new.manifest,
        new.content_digest,
        new.registered_by
    )
    .execute(&mut *conn)
    .await?;
    apps::refresh(conn, new.app_id).await?;
    Ok(replaced.rows_affected() == 1)
}

pub async fn find(conn: &mut PgConnection, slug: &str, version: &str) -> sqlx::Result<Option<AppVersion>> {
    let row = sqlx::query_as!(
        Row,
        r#"select v.id, v.app_id, a.slug, a.owner_org_id, a.owner_project_id, v.version, v.status, v.status_reason, v.evidence,
                  v.manifest, v.content_digest, v.canary as "canary: Json<Canary>", v.canary_round, v.registered_by,
                  v.created_at, v.updated_at
           from app_versions v join apps a on a.id = v.app_id where a.slug = $1 and v.version = $2"#,
        slug,
        version
    )
    .fetch_optional(conn)
    .await?;
    row.map(AppVersion::try_from).transpose()
}

/// Held still until the transaction ends, so that what was decided about it stays true.
pub async fn find_locked(
    conn: &mut PgConnection,
    slug: &str,
    version: &str,
) -> sqlx::Result<Option<AppVersion>> {
    let row = sqlx::query_as!(
        Row,
        r#"select v.id, v.app_id, a.slug, a.owner_org_id, a.owner_project_id, v.version, v.status, v.status_reason, v.evidence,
                  v.manifest, v.content_digest, v.canary as "canary: Json<Canary>", v.canary_round, v.registered_by,
                  v.created_at, v.updated_at
           from app_versions v join apps a on a.id = v.app_id where a.slug = $1 and v.version = $2 for update of v"#,
        slug,
        version
    )
    .fetch_optional(conn)
    .await?;
    row.map(AppVersion::try_from).transpose()
}

/// The version, with its app and itself held still in that order: for whoever is about to move it.
pub async fn lock(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<AppVersion>> {
    let app = sqlx::query_scalar!("select app_id from app_versions where id = $1", id);
    let Some(app) = app.fetch_optional(&mut *conn).await? else { return Ok(None) };
    apps::lock(conn, app).await?;
    let row = sqlx::query_as!(
        Row,
        r#"select v.id, v.app_id, a.slug, a.owner_org_id, a.owner_project_id, v.version, v.status, v.status_reason, v.evidence,
                  v.manifest, v.content_digest, v.canary as "canary: Json<Canary>", v.canary_round, v.registered_by,
                  v.created_at, v.updated_at
           from app_versions v join apps a on a.id = v.app_id where v.id = $1 for update of v"#,
        id
    )
    .fetch_optional(conn)
    .await?;
    row.map(AppVersion::try_from).transpose()
}

/// In the order of registration.
pub async fn list(conn: &mut PgConnection, app_id: Uuid, slice: Slice) -> sqlx::Result<Vec<AppVersion>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select v.id, v.app_id, a.slug, a.owner_org_id, a.owner_project_id, v.version, v.status, v.status_reason, v.evidence,
                  v.manifest, v.content_digest, v.canary as "canary: Json<Canary>", v.canary_round, v.registered_by,
                  v.created_at, v.updated_at
           from app_versions v join apps a on a.id = v.app_id
           where v.app_id = $1 and v.id > $2 order by v.id limit $3"#,
        app_id,
        slice.after.unwrap_or_default(),
        slice.limit
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(AppVersion::try_from).collect()
}

/// Every version number of an app, for whoever compares them.
pub async fn numbers(conn: &mut PgConnection, app_id: Uuid) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!("select version from app_versions where app_id = $1", app_id).fetch_all(conn).await
}

/// The other active versions of an app.
pub async fn active_besides(conn: &mut PgConnection, app_id: Uuid, id: Uuid) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select id from app_versions where app_id = $1 and id <> $2 and status = 'active' order by id",
        app_id,
        id
    )
    .fetch_all(conn)
    .await
}

/// One move of a version.
#[derive(Debug, Default)]
pub struct Advance<'a> {
    /// Whom the canary is open to, where the move begins or widens one.
    pub canary: Option<&'a Canary>,
    pub reason: Option<&'a str>,
    pub evidence: Option<&'a Value>,
}

/// Moves the version where the table says the action leads from `from`. `None`: it does not lead anywhere, or the version
/// is not in `from` any more. Lock the version first.
pub async fn advance(
    conn: &mut PgConnection,
    version: &AppVersion,
    action: VersionAction,
    with: Advance<'_>,
) -> sqlx::Result<Option<VersionStatus>> {
    let from = version.status;
    let Some(to) = action.leads(from) else { return Ok(None) };
    let canary = with.canary.filter(|_| to == VersionStatus::Canary).map(Json);
    let begins = to == VersionStatus::Canary && from != VersionStatus::Canary;
    let moved = sqlx::query!(
        "update app_versions set status = $3, canary = $4, canary_round = canary_round + $5, status_reason = $6,
                evidence = $7, updated_at = engine.now()
         where id = $1 and status = $2",
        version.id,
        from.as_str(),
        to.as_str(),
        canary as _,
        i32::from(begins),
        with.reason,
        with.evidence
    )
    .execute(&mut *conn)
    .await?;
    if moved.rows_affected() == 0 {
        return Ok(None);
    }
    apps::refresh(conn, version.app_id).await?;
    Ok(Some(to))
}

/// The versions that somebody may deploy, in the order of registration.
pub async fn deployable(conn: &mut PgConnection, app_id: Uuid) -> sqlx::Result<Vec<AppVersion>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select v.id, v.app_id, a.slug, a.owner_org_id, a.owner_project_id, v.version, v.status, v.status_reason, v.evidence,
                  v.manifest, v.content_digest, v.canary as "canary: Json<Canary>", v.canary_round, v.registered_by,
                  v.created_at, v.updated_at
           from app_versions v join apps a on a.id = v.app_id
           where v.app_id = $1 and v.status in ('active', 'canary') order by v.id"#,
        app_id
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(AppVersion::try_from).collect()
}

/// For whoever is about to refer to the version: it cannot be retired, nor leave its status, until the transaction ends.
/// Others may refer to it at the same time.
pub async fn hold_for_use(
    conn: &mut PgConnection,
    slug: &str,
    version: &str,
) -> sqlx::Result<Option<AppVersion>> {
    let row = sqlx::query_as!(
        Row,
        r#"select v.id, v.app_id, a.slug, a.owner_org_id, a.owner_project_id, v.version, v.status, v.status_reason, v.evidence,
                  v.manifest, v.content_digest, v.canary as "canary: Json<Canary>", v.canary_round, v.registered_by,
                  v.created_at, v.updated_at
           from app_versions v join apps a on a.id = v.app_id where a.slug = $1 and v.version = $2 for share of v"#,
        slug,
        version
    )
    .fetch_optional(conn)
    .await?;
    row.map(AppVersion::try_from).transpose()
}
