//! Apps: one row per slug, owned by the project that registered it first. What lists show of an app's versions is kept in
//! its row, so that a page of the catalog reads this table alone.

use chrono::{DateTime, Utc};
use domain::manifest::number;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct App {
    pub id: Uuid,
    pub slug: String,
    pub owner_org_id: Uuid,
    pub owner_project_id: Uuid,
    /// The `app` part of the newest version's manifest.
    pub card: Value,
    /// Of those that are not retired.
    pub newest_version: Option<String>,
    /// The newest that every entitled project may deploy.
    pub active_version: Option<String>,
    /// How many versions are in canary.
    pub canaries: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl App {
    /// Organization and project, as events and runs want them.
    pub fn owner(&self) -> (Uuid, Uuid) {
        (self.owner_org_id, self.owner_project_id)
    }
}

/// Makes the app unless the slug is taken, and holds its row still either way. Apps are locked before their versions.
pub async fn ensure_locked(
    conn: &mut PgConnection,
    slug: &str,
    (org_id, project_id): (Uuid, Uuid),
    card: &Value,
) -> sqlx::Result<App> {
    sqlx::query!(
        "insert into apps (id, slug, owner_org_id, owner_project_id, card) values ($1, $2, $3, $4, $5)
         on conflict (slug) do nothing",
        Uuid::now_v7(),
        slug,
        org_id,
        project_id,
        card
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query_as!(
        App,
        "select id, slug, owner_org_id, owner_project_id, card, newest_version, active_version, canaries, created_at,
                updated_at
         from apps where slug = $1 for update",
        slug
    )
    .fetch_one(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, slug: &str) -> sqlx::Result<Option<App>> {
    sqlx::query_as!(
        App,
        "select id, slug, owner_org_id, owner_project_id, card, newest_version, active_version, canaries, created_at,
                updated_at
         from apps where slug = $1",
        slug
    )
    .fetch_optional(conn)
    .await
}

pub async fn list(conn: &mut PgConnection, slice: Slice) -> sqlx::Result<Vec<App>> {
    sqlx::query_as!(
        App,
        "select id, slug, owner_org_id, owner_project_id, card, newest_version, active_version, canaries, created_at,
                updated_at
         from apps where id > $1 order by id limit $2",
        slice.after.unwrap_or_default(),
        slice.limit
    )
    .fetch_all(conn)
    .await
}

/// Apps the project is entitled to and that have a version somebody may deploy. Whether the project is in a canary is for
/// [`crate::offers`] to say.
pub async fn list_entitled(conn: &mut PgConnection, project: Uuid, slice: Slice) -> sqlx::Result<Vec<App>> {
    sqlx::query_as!(
        App,
        "select a.id, a.slug, a.owner_org_id, a.owner_project_id, a.card, a.newest_version, a.active_version, a.canaries,
                a.created_at, a.updated_at
         from entitlements e join apps a on a.id = e.app_id
         where e.project_id = $1 and e.app_id > $2 and e.enabled and (a.active_version is not null or a.canaries > 0)
         order by e.app_id limit $3",
        project,
        slice.after.unwrap_or_default(),
        slice.limit
    )
    .fetch_all(conn)
    .await
}

/// Holds the app still. Whoever moves a version does this first, so that the order of locks is always the same.
pub async fn lock(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("select id from apps where id = $1 for update", id).fetch_optional(conn).await?;
    Ok(())
}

/// Brings what the app's row says of its versions up to date. Call it after a version came or moved, with the app locked.
pub async fn refresh(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    let versions = sqlx::query!(
        "select version, status from app_versions where app_id = $1 and status <> 'retired'",
        id
    )
    .fetch_all(&mut *conn)
    .await?;
    let newest = |status: Option<&str>| {
        let wanted = versions.iter().filter(|row| status.is_none_or(|status| row.status == status));
        wanted.map(|row| row.version.as_str()).max_by(|one, other| number::compare(one, other))
    };
    let canaries = versions.iter().filter(|row| row.status == "canary").count();
    sqlx::query!(
        "update apps a set newest_version = $2, active_version = $3, canaries = $4, updated_at = engine.now(),
                card = coalesce((select v.manifest -> 'app' from app_versions v where v.app_id = $1 and v.version = $2), card)
         where id = $1",
        id,
        newest(None),
        newest(Some("active")),
        i32::try_from(canaries).unwrap_or(i32::MAX)
    )
    .execute(conn)
    .await?;
    Ok(())
}
