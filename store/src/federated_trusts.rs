//! Federated trusts: which outside issuers' tokens a project accepts in exchange for a short token of one of its
//! service accounts.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct FederatedTrust {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub service_account_id: Uuid,
    pub name: String,
    pub issuer: String,
    pub audience: String,
    pub subject_pattern: String,
    pub claims: Value,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
}

pub struct NewFederatedTrust<'a> {
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub service_account_id: Uuid,
    pub name: &'a str,
    pub issuer: &'a str,
    pub audience: &'a str,
    pub subject_pattern: &'a str,
    pub claims: &'a Value,
    pub created_by: Uuid,
}

pub async fn insert(conn: &mut PgConnection, new: &NewFederatedTrust<'_>) -> sqlx::Result<FederatedTrust> {
    sqlx::query_as!(
        FederatedTrust,
        "insert into federated_trusts
             (id, org_id, project_id, service_account_id, name, issuer, audience, subject_pattern, claims, created_by)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         returning id, org_id, project_id, service_account_id, name, issuer, audience, subject_pattern, claims,
                   created_by, created_at",
        Uuid::now_v7(),
        new.org_id,
        new.project_id,
        new.service_account_id,
        new.name,
        new.issuer,
        new.audience,
        new.subject_pattern,
        new.claims,
        new.created_by
    )
    .fetch_one(conn)
    .await
}

pub async fn list(
    conn: &mut PgConnection,
    project_id: Uuid,
    slice: Slice,
) -> sqlx::Result<Vec<FederatedTrust>> {
    sqlx::query_as!(
        FederatedTrust,
        "select id, org_id, project_id, service_account_id, name, issuer, audience, subject_pattern, claims,
                created_by, created_at
         from federated_trusts where project_id = $1 and ($2::uuid is null or id > $2) order by id limit $3",
        project_id,
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<FederatedTrust>> {
    sqlx::query_as!(
        FederatedTrust,
        "select id, org_id, project_id, service_account_id, name, issuer, audience, subject_pattern, claims,
                created_by, created_at
         from federated_trusts where id = $1",
        id
    )
    .fetch_optional(conn)
    .await
}

pub async fn delete(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from federated_trusts where id = $1", id).execute(conn).await?;
    Ok(())
}
