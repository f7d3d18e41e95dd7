//! Projects: what owns every resource. A project never changes its organization.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct Project {
    pub id: Uuid,
    pub org_id: Uuid,
    pub slug: String,
    pub display_name: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

pub async fn insert(
    conn: &mut PgConnection,
    id: Uuid,
    org_id: Uuid,
    slug: &str,
    display_name: &str,
) -> sqlx::Result<Project> {
    sqlx::query_as!(
        Project,
        "insert into projects (id, org_id, slug, display_name) values ($1, $2, $3, $4)
         returning id, org_id, slug, display_name, created_at, updated_at",
        id,
        org_id,
        slug,
        display_name
    )
    .fetch_one(conn)
    .await
}

/// Makes the project unless it is there; what it is called meanwhile stays.
pub async fn ensure(
    conn: &mut PgConnection,
    id: Uuid,
    org_id: Uuid,
    slug: &str,
    display_name: &str,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into projects (id, org_id, slug, display_name) values ($1, $2, $3, $4) on conflict (id) do nothing",
        id,
        org_id,
        slug,
        display_name
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn list(conn: &mut PgConnection, org_id: Option<Uuid>, slice: Slice) -> sqlx::Result<Vec<Project>> {
    sqlx::query_as!(
        Project,
        "select id, org_id, slug, display_name, created_at, updated_at from projects
         where ($1::uuid is null or org_id = $1) and ($2::uuid is null or id > $2) order by id limit $3",
        org_id,
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn org_of(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!("select org_id from projects where id = $1", id).fetch_optional(conn).await
}

/// It never changes, so it may stand in the names of other things.
pub async fn slug_of(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<String> {
    sqlx::query_scalar!("select slug from projects where id = $1", id).fetch_one(conn).await
}

pub async fn find(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Project>> {
    sqlx::query_as!(
        Project,
        "select id, org_id, slug, display_name, created_at, updated_at from projects where id = $1",
        id
    )
    .fetch_optional(conn)
    .await
}

/// Held still until the transaction ends, so that what was compared with it stays true.
pub async fn find_locked(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Project>> {
    sqlx::query_as!(
        Project,
        "select id, org_id, slug, display_name, created_at, updated_at from projects where id = $1 for update",
        id
    )
    .fetch_optional(conn)
    .await
}

pub async fn rename(conn: &mut PgConnection, id: Uuid, display_name: &str) -> sqlx::Result<Project> {
    sqlx::query_as!(
        Project,
        "update projects set display_name = $2, updated_at = engine.now() where id = $1
         returning id, org_id, slug, display_name, created_at, updated_at",
        id,
        display_name
    )
    .fetch_one(conn)
    .await
}
