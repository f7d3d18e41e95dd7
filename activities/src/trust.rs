//! Who may log in to a node: it is told the complete set of keys whenever the set changes, and keeps them in a block of its own. One
//! that could not write it is told again, whoever asked first: a key that was to go must not stay because nobody waited.

use engine::Call;
use node_protocol::{AuthorizedKeys, Task};
use sqlx::PgConnection;
use store::node_tasks::{self, NewNodeTask};
use store::ssh_trusts;
use uuid::Uuid;

/// On whose behalf a node is told.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The same for every try of one step.
    pub key: &'a str,
    pub epoch: i64,
    /// The run to wake, and the name of the signal it waits for.
    pub wakes: Option<(Uuid, &'a str)>,
    pub correlation_id: &'a str,
}

impl<'a> Asking<'a> {
    /// A step that is followed by a wait for this word.
    pub(crate) fn by(call: &'a Call, signal: &'a str) -> Asking<'a> {
        Asking {
            key: &call.idempotency_key,
            epoch: call.epoch,
            wakes: Some((call.run, signal)),
            correlation_id: &call.correlation_id,
        }
    }
}

/// Tells the node what is wanted now. Answers the task; one that an earlier try made stands.
pub async fn tell(conn: &mut PgConnection, node_id: Uuid, asking: Asking<'_>) -> sqlx::Result<Uuid> {
    if let Some(known) = node_tasks::find_by_key(conn, asking.key).await? {
        node_tasks::raise_epoch(conn, known.id, asking.epoch).await?;
        return Ok(known.id);
    }
    let (generation, keys) = ssh_trusts::wanted(conn, node_id).await?;
    let user = AuthorizedKeys::USER.to_owned();
    let task = Task::SshInstallAuthorizedKeys(AuthorizedKeys { user, keys });
    let input = task.input().map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let new = NewNodeTask {
        id: Uuid::now_v7(),
        node_id,
        org_id: None,
        project_id: None,
        instance_id: None,
        kind: task.kind(),
        idempotency_key: asking.key,
        generation,
        epoch: asking.epoch,
        wakes: asking.wakes,
        input: &input,
        sealed: None,
        correlation_id: asking.correlation_id,
        trace_id: None,
    };
    node_tasks::insert(conn, &new).await
}

/// A key in custody was replaced or revoked: every node that it opened is told.
pub async fn tell_all(conn: &mut PgConnection, credential: Uuid, correlation_id: &str) -> sqlx::Result<()> {
    let nodes = ssh_trusts::opened_by(conn, credential).await?;
    tell_each(conn, nodes, correlation_id).await
}

/// Every node that did not do what it was told last is told what is wanted now. Answers how many those are.
pub async fn tell_again(conn: &mut PgConnection, correlation_id: &str) -> sqlx::Result<usize> {
    let nodes = ssh_trusts::unheeded(conn).await?;
    let told = nodes.len();
    tell_each(conn, nodes, correlation_id).await?;
    Ok(told)
}

/// In the order in which they come, the same for everybody who tells several: each node's set is held until the end.
async fn tell_each(conn: &mut PgConnection, nodes: Vec<Uuid>, correlation_id: &str) -> sqlx::Result<()> {
    for node in nodes {
        let key = format!("ssh_trust/{}", Uuid::now_v7());
        tell(conn, node, Asking { key: &key, epoch: 1, wakes: None, correlation_id }).await?;
    }
    Ok(())
}
