//! Entitlements: which apps a project may use, and what it gave up of them.

use chrono::{DateTime, Utc};
use domain::entitlement::Limits;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct Entitlement {
    pub project_id: Uuid,
    pub org_id: Uuid,
    pub app_id: Uuid,
    pub app_slug: String,
    pub enabled: bool,
    pub overrides: Json<Limits>,
    pub updated_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

pub async fn find(conn: &mut PgConnection, project: Uuid, app: Uuid) -> sqlx::Result<Option<Entitlement>> {
    sqlx::query_as!(
        Entitlement,
        r#"select e.project_id, e.org_id, e.app_id, a.slug as app_slug, e.enabled, e.overrides as "overrides: Json<Limits>",
                  e.updated_by, e.created_at, e.updated_at
           from entitlements e join apps a on a.id = e.app_id where e.project_id = $1 and e.app_id = $2"#,
        project,
        app
    )
    .fetch_optional(conn)
    .await
}

/// Held still until the transaction ends, so that what was compared with it stays true.
pub async fn find_locked(
    conn: &mut PgConnection,
    project: Uuid,
    app: Uuid,
) -> sqlx::Result<Option<Entitlement>> {
    sqlx::query_as!(
        Entitlement,
        r#"select e.project_id, e.org_id, e.app_id, a.slug as app_slug, e.enabled, e.overrides as "overrides: Json<Limits>",
                  e.updated_by, e.created_at, e.updated_at
           from entitlements e join apps a on a.id = e.app_id where e.project_id = $1 and e.app_id = $2 for update of e"#,
        project,
        app
    )
    .fetch_optional(conn)
    .await
}

/// Whether the project may use the app at all.
pub async fn is_enabled(conn: &mut PgConnection, project: Uuid, slug: &str) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (
               select 1 from entitlements e join apps a on a.id = e.app_id
               where e.project_id = $1 and a.slug = $2 and e.enabled
           ) as "enabled!""#,
        project,
        slug
    )
    .fetch_one(conn)
    .await
}

pub async fn list(conn: &mut PgConnection, project: Uuid, slice: Slice) -> sqlx::Result<Vec<Entitlement>> {
    sqlx::query_as!(
        Entitlement,
        r#"select e.project_id, e.org_id, e.app_id, a.slug as app_slug, e.enabled, e.overrides as "overrides: Json<Limits>",
                  e.updated_by, e.created_at, e.updated_at
           from entitlements e join apps a on a.id = e.app_id
           where e.project_id = $1 and e.app_id > $2 order by e.app_id limit $3"#,
        project,
        slice.after.unwrap_or_default(),
        slice.limit
    )
    .fetch_all(conn)
    .await
}

pub struct NewEntitlement<'a> {
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_id: Uuid,
    pub enabled: bool,
    pub overrides: &'a Limits,
    pub updated_by: Uuid,
}

pub async fn set(conn: &mut PgConnection, new: &NewEntitlement<'_>) -> sqlx::Result<Entitlement> {
    sqlx::query!(
        "insert into entitlements (project_id, org_id, app_id, enabled, overrides, updated_by)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (project_id, app_id) do update set enabled = excluded.enabled, overrides = excluded.overrides,
             updated_by = excluded.updated_by, updated_at = engine.now()",
        new.project_id,
        new.org_id,
        new.app_id,
        new.enabled,
        Json(new.overrides) as _,
        new.updated_by
    )
    .execute(&mut *conn)
    .await?;
    find(conn, new.project_id, new.app_id).await?.ok_or(sqlx::Error::RowNotFound)
}
