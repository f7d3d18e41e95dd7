//! Whose keys open a node: those of the instances that stand there and were given one. A node is always told the complete set.

use sqlx::PgConnection;
use uuid::Uuid;

/// From now on the instance's key opens the node. False where it did already.
pub async fn extend(
    conn: &mut PgConnection,
    instance: Uuid,
    node: Uuid,
    credential: Uuid,
) -> sqlx::Result<bool> {
    let extended = sqlx::query!(
        "insert into ssh_trusts (instance_id, node_id, credential_id) values ($1, $2, $3) on conflict do nothing",
        instance,
        node,
        credential
    )
    .execute(conn)
    .await?;
    Ok(extended.rows_affected() == 1)
}

/// From now on it does not. Answers the node that it opened, if there was one.
pub async fn end(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!("delete from ssh_trusts where instance_id = $1 returning node_id", instance)
        .fetch_optional(conn)
        .await
}

/// The nodes that a key in custody opens.
pub async fn opened_by(conn: &mut PgConnection, credential: Uuid) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select distinct node_id from ssh_trusts where credential_id = $1 order by node_id",
        credential
    )
    .fetch_all(conn)
    .await
}

/// Live nodes that did not write the newest set they were told, and have not been told again for a minute.
pub async fn unheeded(conn: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select n.id from nodes n
         cross join lateral (select t.status, t.finished_at from node_tasks t
                             where t.node_id = n.id and t.kind = 'ssh.install_authorized_keys'
                             order by t.generation desc limit 1) newest
         where n.status in ('active', 'drained') and newest.status in ('failed', 'refused')
           and newest.finished_at < engine.now() - interval '1 minute'
           and not exists (select from node_tasks o where o.node_id = n.id and o.finished_at is null
                               and o.kind = 'ssh.install_authorized_keys')
         order by n.id"
    )
    .fetch_all(conn)
    .await
}

/// The complete set of a node, and the number of this look at it. Whoever looks holds the node's set until the transaction ends,
/// so that a later number is never of an earlier set.
pub async fn wanted(conn: &mut PgConnection, node: Uuid) -> sqlx::Result<(i64, Vec<String>)> {
    sqlx::query!(
        "select pg_advisory_xact_lock(hashtextextended('ssh_trusts:' || $1::text, 0))",
        node.to_string()
    )
    .execute(&mut *conn)
    .await?;
    let number = sqlx::query_scalar!(r#"select nextval('ssh_trust_number') as "number!""#)
        .fetch_one(&mut *conn)
        .await?;
    let keys = sqlx::query_scalar!(
        r#"select distinct c.public_key as "key!" from ssh_trusts t join access_credentials c on c.id = t.credential_id
           where t.node_id = $1 and c.public_key is not null order by 1"#,
        node
    )
    .fetch_all(conn)
    .await?;
    Ok((number, keys))
}
