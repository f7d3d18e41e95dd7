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

/// The node owes a removal from now on; one that owes already, since when it does.
pub async fn owe(conn: &mut PgConnection, instance: Uuid, node: Uuid, run: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into teardown_debts as d (instance_id, node_id, run_id) values ($1, $2, $3)
         on conflict (instance_id) do update
         set node_id = excluded.node_id, run_id = excluded.run_id, created_at = engine.now(), collected_at = null
         where d.collected_at is not null",
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

/// A debt whose node has answered a removal since.
#[derive(Clone, Debug)]
pub struct Payable {
    pub debt: Debt,
    /// The newest removal that it answered.
    pub answered: Uuid,
    /// What it answered where it says that it did what it was asked, newest first.
    pub done: Vec<Value>,
}

/// Open debts of nodes that are heard of, of instances that no run acts on but this one, by instance: of all, or of one alone.
pub async fn payable(
    conn: &mut PgConnection,
    run: Uuid,
    instance: Option<Uuid>,
) -> sqlx::Result<Vec<Payable>> {
    let rows = sqlx::query!(
        r#"select d.instance_id, d.node_id, d.run_id, d.created_at, d.collected_at, answers.newest as "answered!",
               answers.done as "done!: Vec<Value>"
           from teardown_debts d join nodes n on n.id = d.node_id and n.status in ('active', 'drained')
           join app_instances i on i.id = d.instance_id
           cross join lateral (
               select (array_agg(t.id order by t.id desc))[1] as newest,
                      coalesce(array_agg(t.result order by t.id desc) filter (where t.result ->> 'status' = 'succeeded'),
                               '{}') as done
               from node_tasks t
               where t.instance_id = d.instance_id and t.node_id = d.node_id
                 and t.kind in ('oci.remove', 'compose.remove') and t.finished_at >= d.created_at and t.result is not null
           ) answers
           where d.collected_at is null and answers.newest is not null and ($1::uuid is null or d.instance_id = $1)
             and not exists (select from engine.run r where r.finished_at is null and r.target = 'app_instance:' || i.id
                             and r.id <> $2)
           order by d.instance_id"#,
        instance,
        run
    )
    .fetch_all(conn)
    .await?;
    let read = rows.into_iter().map(|row| {
        let debt = Debt {
            instance_id: row.instance_id,
            node_id: row.node_id,
            run_id: row.run_id,
            created_at: row.created_at,
            collected_at: row.collected_at,
        };
        Payable { debt, answered: row.answered, done: row.done }
    });
    Ok(read.collect())
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
