//! Custom roles: an organization's own sets of permission keys, each under a name.

use chrono::{DateTime, Utc};
use domain::PermissionSet;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct CustomRole {
    pub id: Uuid,
    pub org_id: Uuid,
    pub name: String,
    pub permissions: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl CustomRole {
    pub fn keys(&self) -> PermissionSet {
        PermissionSet::known_among(&self.permissions)
    }
}

pub async fn insert(
    conn: &mut PgConnection,
    org_id: Uuid,
    name: &str,
    keys: PermissionSet,
) -> sqlx::Result<CustomRole> {
    sqlx::query_as!(
        CustomRole,
        "insert into custom_roles (id, org_id, name, permissions) values ($1, $2, $3, $4)
         returning id, org_id, name, permissions, created_at, updated_at",
        Uuid::now_v7(),
        org_id,
        name,
        &keys.names()
    )
    .fetch_one(conn)
    .await
}

pub async fn list(conn: &mut PgConnection, org_id: Uuid, slice: Slice) -> sqlx::Result<Vec<CustomRole>> {
    sqlx::query_as!(
        CustomRole,
        "select id, org_id, name, permissions, created_at, updated_at from custom_roles
         where org_id = $1 and ($2::uuid is null or id > $2) order by id limit $3",
        org_id,
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn named(conn: &mut PgConnection, org_id: Uuid, name: &str) -> sqlx::Result<Option<CustomRole>> {
    sqlx::query_as!(
        CustomRole,
        "select id, org_id, name, permissions, created_at, updated_at from custom_roles
         where org_id = $1 and name = $2",
        org_id,
        name
    )
    .fetch_optional(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, org_id: Uuid, id: Uuid) -> sqlx::Result<Option<CustomRole>> {
    sqlx::query_as!(
        CustomRole,
        "select id, org_id, name, permissions, created_at, updated_at from custom_roles
         where org_id = $1 and id = $2",
        org_id,
        id
    )
    .fetch_optional(conn)
    .await
}

/// Held still until the transaction ends, so that what was compared with it stays true.
pub async fn find_locked(
    conn: &mut PgConnection,
    org_id: Uuid,
    id: Uuid,
) -> sqlx::Result<Option<CustomRole>> {
    sqlx::query_as!(
        CustomRole,
        "select id, org_id, name, permissions, created_at, updated_at from custom_roles
         where org_id = $1 and id = $2 for update",
        org_id,
        id
    )
    .fetch_optional(conn)
    .await
}

pub async fn update(
    conn: &mut PgConnection,
    id: Uuid,
    name: &str,
    keys: PermissionSet,
) -> sqlx::Result<CustomRole> {
    sqlx::query_as!(
        CustomRole,
        "update custom_roles set name = $2, permissions = $3, updated_at = engine.now() where id = $1
         returning id, org_id, name, permissions, created_at, updated_at",
        id,
        name,
        &keys.names()
    )
    .fetch_one(conn)
    .await
}

/// How many members hold the role: while somebody does, it cannot go.
pub async fn holders(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<i64> {
    sqlx::query_scalar!(r#"select count(*) as "holders!" from memberships where role_id = $1"#, id)
        .fetch_one(conn)
        .await
}

pub async fn delete(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from custom_roles where id = $1", id).execute(conn).await?;
    Ok(())
}
