//! Organizations: the tenants that own projects.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct Organization {
    pub id: Uuid,
    pub slug: String,
    pub display_name: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

pub async fn insert(
    conn: &mut PgConnection,
    id: Uuid,
    slug: &str,
    display_name: &str,
) -> sqlx::Result<Organization> {
    sqlx::query_as!(
        Organization,
        "insert into organizations (id, slug, display_name) values ($1, $2, $3)
         returning id, slug, display_name, created_at, updated_at",
        id,
        slug,
        display_name
    )
    .fetch_one(conn)
    .await
}

/// Makes the organization unless it is there; what it is called meanwhile stays.
pub async fn ensure(conn: &mut PgConnection, id: Uuid, slug: &str, display_name: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into organizations (id, slug, display_name) values ($1, $2, $3) on conflict (id) do nothing",
        id,
        slug,
        display_name
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn list(conn: &mut PgConnection, slice: Slice) -> sqlx::Result<Vec<Organization>> {
    sqlx::query_as!(
        Organization,
        "select id, slug, display_name, created_at, updated_at from organizations
         where $1::uuid is null or id > $1 order by id limit $2",
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn exists(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(r#"select exists (select from organizations where id = $1) as "exists!""#, id)
        .fetch_one(conn)
        .await
}

pub async fn find(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Organization>> {
    sqlx::query_as!(
        Organization,
        "select id, slug, display_name, created_at, updated_at from organizations where id = $1",
        id
    )
    .fetch_optional(conn)
    .await
}

/// Held still until the transaction ends, so that what was compared with it stays true.
pub async fn find_locked(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Organization>> {
    sqlx::query_as!(
        Organization,
        "select id, slug, display_name, created_at, updated_at from organizations where id = $1 for update",
        id
    )
    .fetch_optional(conn)
    .await
}

pub async fn rename(conn: &mut PgConnection, id: Uuid, display_name: &str) -> sqlx::Result<Organization> {
    sqlx::query_as!(
        Organization,
        "update organizations set display_name = $2, updated_at = engine.now() where id = $1
         returning id, slug, display_name, created_at, updated_at",
        id,
        display_name
    )
    .fetch_one(conn)
    .await
}
