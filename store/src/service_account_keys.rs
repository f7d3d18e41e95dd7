//! The public halves of service accounts' keys. At most two live at a time, so that a rotation has no gap.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

const MOST_LIVE: i64 = 2;

#[derive(Clone, Debug)]
pub struct ServiceAccountKey {
    pub key_id: String,
    pub created_at: DateTime<Utc>,
}

/// Adds a key. The oldest ones beyond two are revoked; with `alone`, all others are.
pub async fn insert(
    conn: &mut PgConnection,
    service_account_id: Uuid,
    key_id: &str,
    public_key: &str,
    alone: bool,
) -> sqlx::Result<()> {
    let stay = if alone { 0 } else { MOST_LIVE - 1 };
    sqlx::query!(
        "update service_account_keys set revoked_at = engine.now()
         where key_id in (select key_id from service_account_keys where service_account_id = $1 and revoked_at is null
                          order by created_at desc, key_id desc offset $2)",
        service_account_id,
        stay
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "insert into service_account_keys (key_id, service_account_id, public_key) values ($1, $2, $3)",
        key_id,
        service_account_id,
        public_key
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Newest first.
pub async fn live(conn: &mut PgConnection, service_account_id: Uuid) -> sqlx::Result<Vec<ServiceAccountKey>> {
    sqlx::query_as!(
        ServiceAccountKey,
        "select key_id, created_at from service_account_keys
         where service_account_id = $1 and revoked_at is null order by created_at desc, key_id desc",
        service_account_id
    )
    .fetch_all(conn)
    .await
}

/// The live keys of several accounts, newest first.
pub async fn live_of(
    conn: &mut PgConnection,
    service_accounts: &[Uuid],
) -> sqlx::Result<HashMap<Uuid, Vec<ServiceAccountKey>>> {
    let rows = sqlx::query!(
        "select service_account_id, key_id, created_at from service_account_keys
         where service_account_id = any($1) and revoked_at is null order by created_at desc, key_id desc",
        service_accounts
    )
    .fetch_all(conn)
    .await?;
    let mut keys: HashMap<Uuid, Vec<ServiceAccountKey>> = HashMap::new();
    for row in rows {
        let key = ServiceAccountKey { key_id: row.key_id, created_at: row.created_at };
        keys.entry(row.service_account_id).or_default().push(key);
    }
    Ok(keys)
}

/// The public key, if the pair is registered and not revoked.
pub async fn public_key(
    conn: &mut PgConnection,
    service_account_id: Uuid,
    key_id: &str,
) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!(
        "select public_key from service_account_keys
         where service_account_id = $1 and key_id = $2 and revoked_at is null",
        service_account_id,
        key_id
    )
    .fetch_optional(conn)
    .await
}

pub async fn revoke_all(conn: &mut PgConnection, service_account_id: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update service_account_keys set revoked_at = engine.now()
         where service_account_id = $1 and revoked_at is null",
        service_account_id
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The key was given to the workload of this generation of the instance that the account is of.
pub async fn set_generation(conn: &mut PgConnection, key_id: &str, generation: i64) -> sqlx::Result<()> {
    sqlx::query!("update service_account_keys set generation = $2 where key_id = $1", key_id, generation)
        .execute(conn)
        .await?;
    Ok(())
}

/// The workload that a key was given to.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    pub generation: i64,
    /// It is gone, or to go.
    pub is_revoked: bool,
}

/// `None` for a key that no workload was given. Tokens outlive the key that they were made with, so a revoked one is told as such.
pub async fn holder_of(
    conn: &mut PgConnection,
    service_account_id: Uuid,
    key_id: &str,
) -> sqlx::Result<Option<Holder>> {
    sqlx::query_as!(
        Holder,
        r#"select generation as "generation!", revoked_at is not null as "is_revoked!" from service_account_keys
           where service_account_id = $1 and key_id = $2 and generation is not null"#,
        service_account_id,
        key_id
    )
    .fetch_optional(conn)
    .await
}

/// The workload of this generation is gone, and its key with it.
pub async fn revoke_generation(
    conn: &mut PgConnection,
    service_account_id: Uuid,
    generation: i64,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update service_account_keys set revoked_at = engine.now()
         where service_account_id = $1 and generation = $2 and revoked_at is null",
        service_account_id,
        generation
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The workloads of earlier generations are gone, and their keys with them.
pub async fn revoke_before(
    conn: &mut PgConnection,
    service_account_id: Uuid,
    generation: i64,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update service_account_keys set revoked_at = engine.now()
         where service_account_id = $1 and generation < $2 and revoked_at is null",
        service_account_id,
        generation
    )
    .execute(conn)
    .await?;
    Ok(())
}
