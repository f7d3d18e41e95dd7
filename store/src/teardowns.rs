//! How instances ended: receipts of those that left nothing behind, and debts of nodes that did not answer.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

/// Kept once: of two runs that come this far, the first stands.
pub async fn keep_receipt(
    conn: &mut PgConnection,
    instance: Uuid,
    node: Uuid,
    receipt: &Value,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into teardown_receipts (instance_id, node_id, receipt) values ($1, $2, $3) on conflict do nothing",
        instance,
        node,
        receipt
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn receipt(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<Option<Value>> {
    sqlx::query_scalar!("select receipt from teardown_receipts where instance_id = $1", instance)
        .fetch_optional(conn)
        .await
}

#[derive(Clone, Debug)]
pub struct Debt {
    pub instance_id: Uuid,
    pub node_id: Uuid,
    pub run_id: Uuid,
    pub created_at: DateTime<Utc>,
    pub collected_at: Option<DateTime<Utc>>,
}

/// The node owes a removal from now on.
pub async fn owe(conn: &mut PgConnection, instance: Uuid, node: Uuid, run: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into teardown_debts (instance_id, node_id, run_id) values ($1, $2, $3) on conflict do nothing",
        instance,
        node,
        run
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The node paid, if it owed.
pub async fn collect(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update teardown_debts set collected_at = engine.now() where instance_id = $1 and collected_at is null",
        instance
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Debts that nobody has paid yet, by instance.
pub async fn open_debts(conn: &mut PgConnection, slice: Slice) -> sqlx::Result<Vec<Debt>> {
    sqlx::query_as!(
        Debt,
        "select instance_id, node_id, run_id, created_at, collected_at from teardown_debts
         where collected_at is null and ($1::uuid is null or instance_id > $1) order by instance_id limit $2",
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}
