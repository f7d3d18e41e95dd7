//! Service accounts: a project's machines, each with an allowlist of permission keys. A deleted one keeps its row, so
//! that history can name it, and gives its slug back.

use chrono::{DateTime, Utc};
use domain::PermissionSet;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct ServiceAccount {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub slug: String,
    pub name: String,
    pub description: Option<String>,
    pub permissions: Vec<String>,
    pub status: String,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub last_used_at: Option<DateTime<Utc>>,
}

impl ServiceAccount {
    pub fn keys(&self) -> PermissionSet {
        PermissionSet::known_among(&self.permissions)
    }

    pub fn is_active(&self) -> bool {
        self.status == "active"
    }
}

pub struct NewServiceAccount<'a> {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub slug: &'a str,
    pub name: &'a str,
    pub description: Option<&'a str>,
    pub keys: PermissionSet,
    pub created_by: Uuid,
}

pub async fn insert(conn: &mut PgConnection, new: &NewServiceAccount<'_>) -> sqlx::Result<ServiceAccount> {
    sqlx::query_as!(
        ServiceAccount,
        "insert into service_accounts (id, org_id, project_id, slug, name, description, permissions, created_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         returning id, org_id, project_id, slug, name, description, permissions, status, created_by, created_at, updated_at,
                last_used_at",
        new.id,
        new.org_id,
        new.project_id,
        new.slug,
        new.name,
        new.description,
        &new.keys.names(),
        new.created_by
    )
    .fetch_one(conn)
    .await
}

pub async fn list(
    conn: &mut PgConnection,
    project_id: Uuid,
    slice: Slice,
) -> sqlx::Result<Vec<ServiceAccount>> {
    sqlx::query_as!(
        ServiceAccount,
        "select id, org_id, project_id, slug, name, description, permissions, status, created_by, created_at, updated_at,
                last_used_at
         from service_accounts
         where project_id = $1 and status <> 'deleted' and ($2::uuid is null or id > $2) order by id limit $3",
        project_id,
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

/// Deleted ones are not found.
pub async fn find(
    conn: &mut PgConnection,
    project_id: Uuid,
    id: Uuid,
) -> sqlx::Result<Option<ServiceAccount>> {
    sqlx::query_as!(
        ServiceAccount,
        "select id, org_id, project_id, slug, name, description, permissions, status, created_by, created_at, updated_at,
                last_used_at
         from service_accounts where project_id = $1 and id = $2 and status <> 'deleted'",
        project_id,
        id
    )
    .fetch_optional(conn)
    .await
}

/// Held still until the transaction ends: a change of status or keys and the minting of a token take turns on this row.
pub async fn find_locked(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<ServiceAccount>> {
    sqlx::query_as!(
        ServiceAccount,
        "select id, org_id, project_id, slug, name, description, permissions, status, created_by, created_at, updated_at,
                last_used_at
         from service_accounts where id = $1 and status <> 'deleted' for update",
        id
    )
    .fetch_optional(conn)
    .await
}

pub async fn set_status(conn: &mut PgConnection, id: Uuid, status: &str) -> sqlx::Result<ServiceAccount> {
    sqlx::query_as!(
        ServiceAccount,
        "update service_accounts set status = $2, updated_at = engine.now() where id = $1
         returning id, org_id, project_id, slug, name, description, permissions, status, created_by, created_at, updated_at,
                last_used_at",
        id,
        status
    )
    .fetch_one(conn)
    .await
}

/// A token was issued to it just now.
pub async fn used(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("update service_accounts set last_used_at = engine.now() where id = $1", id)
        .execute(conn)
        .await?;
    Ok(())
}
