//! The keys that sign tasks for nodes: at most one is active. The private halves are kept sealed.

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
