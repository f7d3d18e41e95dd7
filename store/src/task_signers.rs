//! The keys that sign tasks for nodes: at most one is active. The private halves are kept sealed.

use chrono::TimeDelta;
use serde_json::Value;
use sqlx::PgConnection;

#[derive(Clone, Debug)]
pub struct TaskSigner {
    pub key_id: String,
    pub public_key: String,
    pub sealed: Option<String>,
    pub state: String,
}

/// Every signer, oldest first, and the version of the list.
pub async fn all(conn: &mut PgConnection) -> sqlx::Result<(i64, Vec<TaskSigner>)> {
    let version = sqlx::query_scalar!("select version from task_keyring").fetch_one(&mut *conn).await?;
    let signers = sqlx::query_as!(
        TaskSigner,
        "select key_id, public_key, sealed, state from task_signers order by created_at, key_id"
    )
    .fetch_all(conn)
    .await?;
    Ok((version, signers))
}

/// The first signer. Of two that are made at once, one stands.
pub async fn make_active(
    conn: &mut PgConnection,
    key_id: &str,
    public_key: &str,
    sealed: &str,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into task_signers (key_id, public_key, sealed, state) values ($1, $2, $3, 'active')
         on conflict do nothing",
        key_id,
        public_key,
        sealed
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Holds the list still until the transaction ends. Answers the id of the active signer, if it is older than this.
pub async fn lock_active_older_than(conn: &mut PgConnection, age: TimeDelta) -> sqlx::Result<Option<String>> {
    sqlx::query!("select version from task_keyring for update").fetch_one(&mut *conn).await?;
    sqlx::query_scalar!(
        "select key_id from task_signers
         where state = 'active' and created_at <= engine.now() - make_interval(secs => $1)",
        age.as_seconds_f64()
    )
    .fetch_optional(conn)
    .await
}

/// The signer signs nothing more, and is believed for a while. What remains is to keep its last word.
pub async fn begin_grace(conn: &mut PgConnection, key_id: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update task_signers set state = 'grace', sealed = null, updated_at = engine.now()
         where key_id = $1 and state = 'active'",
        key_id
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn keep_handover(conn: &mut PgConnection, key_id: &str, signed: &Value) -> sqlx::Result<()> {
    sqlx::query!("update task_signers set handover = $2 where key_id = $1", key_id, signed)
        .execute(conn)
        .await?;
    Ok(())
}

/// Whoever stopped signing so long ago is believed no more. Answers how many.
pub async fn retire(conn: &mut PgConnection, grace: TimeDelta) -> sqlx::Result<u64> {
    let retired = sqlx::query!(
        "update task_signers set state = 'retired', updated_at = engine.now()
         where state = 'grace' and updated_at <= engine.now() - make_interval(secs => $1)",
        grace.as_seconds_f64()
    )
    .execute(conn)
    .await?;
    Ok(retired.rows_affected())
}

/// The last words of signers that handed over, oldest first. A revoked one's is worth nothing.
pub async fn handovers(conn: &mut PgConnection) -> sqlx::Result<Vec<Value>> {
    sqlx::query_scalar!(
        r#"select handover as "handover!" from task_signers
           where handover is not null and state <> 'revoked' order by created_at, key_id"#
    )
    .fetch_all(conn)
    .await
}
