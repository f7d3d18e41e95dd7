//! First answers, kept for a day under the key their request named.
//!
//! The order is: [`try_lock`], [`find`], the effect, [`record`], commit. The lock belongs to the transaction, so it works
//! through a transaction pooler and a crash frees it.

use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

/// What a key is unique within, and the key.
#[derive(Clone, Debug)]
pub struct Slot {
    pub principal_id: Uuid,
    pub method: String,
    pub path: String,
    pub key: String,
}

#[derive(Clone, Debug)]
pub struct Recorded {
    pub body_hash: Vec<u8>,
    pub status: i16,
    /// An object of header names and values.
    pub headers: Value,
    pub body: Vec<u8>,
}

/// False while another transaction works under the same key.
pub async fn try_lock(conn: &mut PgConnection, slot: &Slot) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select pg_try_advisory_xact_lock(
               hashtextextended(concat_ws(chr(10), $1::uuid::text, $2::text, $3::text, $4::text), 0)) as "got!""#,
        slot.principal_id,
        slot.method,
        slot.path,
        slot.key
    )
    .fetch_one(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, slot: &Slot) -> sqlx::Result<Option<Recorded>> {
    sqlx::query_as!(
        Recorded,
        "select body_hash, status, headers, body from idempotency
         where principal_id = $1 and method = $2 and path = $3 and key = $4
           and created_at > engine.now() - interval '24 hours'",
        slot.principal_id,
        slot.method,
        slot.path,
        slot.key
    )
    .fetch_optional(conn)
    .await
}

pub async fn record(conn: &mut PgConnection, slot: &Slot, answer: &Recorded) -> sqlx::Result<()> {
    forget_old(conn, 10).await?;
    // A row that is there already is older than a day: `find` did not see it, and the lock kept others out.
    sqlx::query!(
        "insert into idempotency (principal_id, method, path, key, body_hash, status, headers, body)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (principal_id, method, path, key) do update
         set body_hash = excluded.body_hash, status = excluded.status, headers = excluded.headers,
             body = excluded.body, created_at = engine.now()",
        slot.principal_id,
        slot.method,
        slot.path,
        slot.key,
        answer.body_hash,
        answer.status,
        answer.headers,
        answer.body
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// At most so many. Whoever adds one takes a few away, so that the table stays small between two sweeps.
pub async fn forget_old(conn: &mut PgConnection, most: i64) -> sqlx::Result<u64> {
    let gone = sqlx::query!(
        "delete from idempotency where (principal_id, method, path, key) in (
             select principal_id, method, path, key from idempotency
             where created_at < (select engine.now()) - interval '24 hours' limit $1 for update skip locked)",
        most
    )
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}
