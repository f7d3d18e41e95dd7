//! Secrets in custody. A secret comes in sealed for its row and leaves only by [`sealed`]; what is read otherwise does not
//! hold it. A revoked one keeps its row, so that history can name it, and nothing else.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct AccessCredential {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub name: String,
    pub kind: String,
    pub version: i32,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub rotated_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
}

pub struct NewAccessCredential<'a> {
    /// Made by the caller, since what is sealed is bound to it.
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub name: &'a str,
    pub kind: &'a str,
    pub sealed: &'a str,
    /// Of an SSH key: the line by which nodes know it.
    pub public_key: Option<&'a str>,
    pub created_by: Uuid,
}

/// What a secret is sealed for: this row and no other.
pub fn sealed_for(id: Uuid) -> String {
    format!("access_credentials.sealed:{id}")
}

pub async fn insert(
    conn: &mut PgConnection,
    new: &NewAccessCredential<'_>,
) -> sqlx::Result<AccessCredential> {
    sqlx::query_as!(
        AccessCredential,
        "insert into access_credentials (id, org_id, project_id, name, kind, sealed, created_by, public_key)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         returning id, org_id, project_id, name, kind, version, created_by, created_at, rotated_at, revoked_at",
        new.id,
        new.org_id,
        new.project_id,
        new.name,
        new.kind,
        new.sealed,
        new.created_by,
        new.public_key
    )
    .fetch_one(conn)
    .await
}

pub async fn list(
    conn: &mut PgConnection,
    project: Uuid,
    slice: Slice,
) -> sqlx::Result<Vec<AccessCredential>> {
    sqlx::query_as!(
        AccessCredential,
        "select id, org_id, project_id, name, kind, version, created_by, created_at, rotated_at, revoked_at
         from access_credentials where project_id = $1 and ($2::uuid is null or id > $2) order by id limit $3",
        project,
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn find(
    conn: &mut PgConnection,
    project: Uuid,
    id: Uuid,
) -> sqlx::Result<Option<AccessCredential>> {
    sqlx::query_as!(
        AccessCredential,
        "select id, org_id, project_id, name, kind, version, created_by, created_at, rotated_at, revoked_at
         from access_credentials where project_id = $1 and id = $2",
        project,
        id
    )
    .fetch_optional(conn)
    .await
}

pub async fn find_locked(
    conn: &mut PgConnection,
    project: Uuid,
    id: Uuid,
) -> sqlx::Result<Option<AccessCredential>> {
    sqlx::query_as!(
        AccessCredential,
        "select id, org_id, project_id, name, kind, version, created_by, created_at, rotated_at, revoked_at
         from access_credentials where project_id = $1 and id = $2 for update",
        project,
        id
    )
    .fetch_optional(conn)
    .await
}

/// The seal of a secret that is still in custody. It stays there until the transaction ends: whoever revokes or replaces it
/// takes turns with those who hand it over.
pub async fn sealed(conn: &mut PgConnection, project: Uuid, id: Uuid) -> sqlx::Result<Option<String>> {
    let sealed = sqlx::query_scalar!(
        "select sealed from access_credentials where project_id = $1 and id = $2 for share",
        project,
        id
    )
    .fetch_optional(conn)
    .await?;
    Ok(sealed.flatten())
}

/// Those of these that the project can use.
pub async fn usable(conn: &mut PgConnection, project: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select id from access_credentials where project_id = $1 and id = any($2) and revoked_at is null",
        project,
        ids
    )
    .fetch_all(conn)
    .await
}

/// Those of these that the project can use and nodes know by a line.
pub async fn usable_keys(conn: &mut PgConnection, project: Uuid, ids: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select id from access_credentials where project_id = $1 and id = any($2) and public_key is not null",
        project,
        ids
    )
    .fetch_all(conn)
    .await
}

/// From here on launches hand over the new secret.
pub async fn rotate(
    conn: &mut PgConnection,
    id: Uuid,
    sealed: &str,
    public_key: Option<&str>,
) -> sqlx::Result<AccessCredential> {
    sqlx::query_as!(
        AccessCredential,
        "update access_credentials set sealed = $2, public_key = $3, version = version + 1, rotated_at = engine.now()
         where id = $1
         returning id, org_id, project_id, name, kind, version, created_by, created_at, rotated_at, revoked_at",
        id,
        sealed,
        public_key
    )
    .fetch_one(conn)
    .await
}

/// Revoked already stays as it was.
pub async fn revoke(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<AccessCredential> {
    sqlx::query_as!(
        AccessCredential,
        "update access_credentials set sealed = null, public_key = null, revoked_at = coalesce(revoked_at, engine.now())
         where id = $1
         returning id, org_id, project_id, name, kind, version, created_by, created_at, rotated_at, revoked_at",
        id
    )
    .fetch_one(conn)
    .await
}
