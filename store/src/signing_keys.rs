//! Keys whose signatures a project accepts. A retired one keeps its row, so that evidence can name it.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct SigningKey {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub name: String,
    pub algorithm: String,
    pub public_key: String,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub retired_at: Option<DateTime<Utc>>,
}

pub struct NewSigningKey<'a> {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub name: &'a str,
    pub algorithm: &'a str,
    pub public_key: &'a str,
    pub created_by: Uuid,
}

pub async fn insert(conn: &mut PgConnection, new: &NewSigningKey<'_>) -> sqlx::Result<SigningKey> {
    sqlx::query_as!(
        SigningKey,
        "insert into signing_keys (id, org_id, project_id, name, algorithm, public_key, created_by)
         values ($1, $2, $3, $4, $5, $6, $7)
         returning id, org_id, project_id, name, algorithm, public_key, created_by, created_at, retired_at",
        new.id,
        new.org_id,
        new.project_id,
        new.name,
        new.algorithm,
        new.public_key,
        new.created_by
    )
    .fetch_one(conn)
    .await
}

pub async fn list(conn: &mut PgConnection, project_id: Uuid, slice: Slice) -> sqlx::Result<Vec<SigningKey>> {
    sqlx::query_as!(
        SigningKey,
        "select id, org_id, project_id, name, algorithm, public_key, created_by, created_at, retired_at
         from signing_keys where project_id = $1 and ($2::uuid is null or id > $2) order by id limit $3",
        project_id,
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

/// Those that vouch today.
pub async fn live(conn: &mut PgConnection, project_id: Uuid) -> sqlx::Result<Vec<SigningKey>> {
    sqlx::query_as!(
        SigningKey,
        "select id, org_id, project_id, name, algorithm, public_key, created_by, created_at, retired_at
         from signing_keys where project_id = $1 and retired_at is null order by id",
        project_id
    )
    .fetch_all(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, project_id: Uuid, id: Uuid) -> sqlx::Result<Option<SigningKey>> {
    sqlx::query_as!(
        SigningKey,
        "select id, org_id, project_id, name, algorithm, public_key, created_by, created_at, retired_at
         from signing_keys where project_id = $1 and id = $2",
        project_id,
        id
    )
    .fetch_optional(conn)
    .await
}

pub async fn find_locked(
    conn: &mut PgConnection,
    project_id: Uuid,
    id: Uuid,
) -> sqlx::Result<Option<SigningKey>> {
    sqlx::query_as!(
        SigningKey,
        "select id, org_id, project_id, name, algorithm, public_key, created_by, created_at, retired_at
         from signing_keys where project_id = $1 and id = $2 for update",
        project_id,
        id
    )
    .fetch_optional(conn)
    .await
}

/// Retired already stays as it was.
pub async fn retire(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<SigningKey> {
    sqlx::query_as!(
        SigningKey,
        "update signing_keys set retired_at = coalesce(retired_at, engine.now()) where id = $1
         returning id, org_id, project_id, name, algorithm, public_key, created_by, created_at, retired_at",
        id
    )
    .fetch_one(conn)
    .await
}
