//! Nodes: machines that run workloads. A node is known by its own key, which it registers once with a token that is kept
//! here only as a digest.

use chrono::{DateTime, TimeDelta, Utc};
use domain::NodeStatus;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::listening::BREAK_SECONDS;
use crate::{Slice, parsed};

#[derive(Clone, Debug)]
pub struct Node {
    pub id: Uuid,
    pub name: String,
    pub status: String,
    pub drained: bool,
    pub address: Option<String>,
    pub driver: Option<String>,
    pub agent_version: Option<String>,
    pub inventory: Option<Value>,
    pub key_id: Option<String>,
    pub last_seen_at: Option<DateTime<Utc>>,
    pub report_sequence: i64,
    pub report: Option<Value>,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub enrolled_at: Option<DateTime<Utc>>,
}

impl Node {
    pub fn status(&self) -> sqlx::Result<NodeStatus> {
        parsed(&self.status)
    }
}

/// A row, and the digest of the token that enrols it.
pub struct NewNode<'a> {
    pub id: Uuid,
    pub name: &'a str,
    pub enrolment_hash: &'a [u8],
    pub enrolment_lives: TimeDelta,
    pub created_by: Uuid,
}

pub async fn insert(conn: &mut PgConnection, new: &NewNode<'_>) -> sqlx::Result<Node> {
    sqlx::query_as!(
        Node,
        "insert into nodes (id, name, enrolment_hash, enrolment_expires_at, created_by)
         values ($1, $2, $3, engine.now() + make_interval(secs => $4), $5)
         returning id, name, status, drained, address, driver, agent_version, inventory, key_id, last_seen_at, report_sequence,
                report, created_by, created_at, updated_at, enrolled_at",
        new.id,
        new.name,
        new.enrolment_hash,
        new.enrolment_lives.as_seconds_f64(),
        new.created_by
    )
    .fetch_one(conn)
    .await
}

pub async fn list(conn: &mut PgConnection, slice: Slice) -> sqlx::Result<Vec<Node>> {
    sqlx::query_as!(
        Node,
        "select id, name, status, drained, address, driver, agent_version, inventory, key_id, last_seen_at, report_sequence,
                report, created_by, created_at, updated_at, enrolled_at
         from nodes where $1::uuid is null or id > $1 order by id limit $2",
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Node>> {
    sqlx::query_as!(
        Node,
        "select id, name, status, drained, address, driver, agent_version, inventory, key_id, last_seen_at, report_sequence,
                report, created_by, created_at, updated_at, enrolled_at
         from nodes where id = $1",
        id
    )
    .fetch_optional(conn)
    .await
}

/// Held still until the transaction ends.
pub async fn find_locked(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Node>> {
    sqlx::query_as!(
        Node,
        "select id, name, status, drained, address, driver, agent_version, inventory, key_id, last_seen_at, report_sequence,
                report, created_by, created_at, updated_at, enrolled_at
         from nodes where id = $1 for update",
        id
    )
    .fetch_optional(conn)
    .await
}

/// What a node says of itself when it enrols.
pub struct Enrolment<'a> {
    pub key_id: &'a str,
    pub public_key: &'a str,
    pub address: &'a str,
    pub driver: &'a str,
    pub agent_version: &'a str,
    pub inventory: &'a Value,
}

/// Registers the key, which uses the token up. `None` when the token is unknown, used or too old.
pub async fn enrol(
    conn: &mut PgConnection,
    enrolment_hash: &[u8],
    node: &Enrolment<'_>,
) -> sqlx::Result<Option<Node>> {
    sqlx::query_as!(
        Node,
        "update nodes set status = 'active', key_id = $2, public_key = $3, address = $4, driver = $5, agent_version = $6,
                inventory = $7, enrolled_at = engine.now(), last_seen_at = engine.now(), updated_at = engine.now()
         where enrolment_hash = $1 and enrolment_expires_at > engine.now() and status = 'enrolling'
         returning id, name, status, drained, address, driver, agent_version, inventory, key_id, last_seen_at, report_sequence,
                report, created_by, created_at, updated_at, enrolled_at",
        enrolment_hash,
        node.key_id,
        node.public_key,
        node.address,
        node.driver,
        node.agent_version,
        node.inventory
    )
    .fetch_optional(conn)
    .await
}

/// The node that the token was used up for, if it was with this very key: its answer may have gone astray. For as long as the
/// token would be good.
pub async fn enrolled_with(
    conn: &mut PgConnection,
    enrolment_hash: &[u8],
    key_id: &str,
) -> sqlx::Result<Option<Node>> {
    sqlx::query_as!(
        Node,
        "select id, name, status, drained, address, driver, agent_version, inventory, key_id, last_seen_at, report_sequence,
                report, created_by, created_at, updated_at, enrolled_at
         from nodes where enrolment_hash = $1 and enrolment_expires_at > engine.now() and key_id = $2",
        enrolment_hash,
        key_id
    )
    .fetch_optional(conn)
    .await
}

/// The public half of the node's key, if this is the id it is registered under.
pub async fn public_key(conn: &mut PgConnection, id: Uuid, key_id: &str) -> sqlx::Result<Option<String>> {
    let key = sqlx::query_scalar!("select public_key from nodes where id = $1 and key_id = $2", id, key_id)
        .fetch_optional(conn)
        .await?;
    Ok(key.flatten())
}

/// The key a node enrolled with, as PEM: what it signs is judged by it.
pub async fn enrolled_key(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<String>> {
    let key =
        sqlx::query_scalar!("select public_key from nodes where id = $1", id).fetch_optional(conn).await?;
    Ok(key.flatten())
}

/// Moves a node along the table of legal moves. False when it stands elsewhere or the move is not legal.
pub async fn move_to(
    conn: &mut PgConnection,
    id: Uuid,
    from: NodeStatus,
    to: NodeStatus,
) -> sqlx::Result<bool> {
    if !from.may_become(to) {
        return Ok(false);
    }
    // Losing a node is not draining it: that an administrator drained it outlives the loss.
    let drained = match to {
        NodeStatus::Drained => Some(true),
        NodeStatus::Active => Some(false),
        NodeStatus::Enrolling | NodeStatus::Unavailable => None,
    };
    let moved = sqlx::query!(
        "update nodes set status = $3, drained = coalesce($4, drained), updated_at = engine.now()
         where id = $1 and status = $2",
        id,
        from.as_str(),
        to.as_str(),
        drained
    )
    .execute(conn)
    .await?;
    Ok(moved.rows_affected() == 1)
}

/// What a node tells of itself while it lives.
pub struct Report<'a> {
    pub sequence: i64,
    pub report: &'a Value,
    pub agent_version: &'a str,
    /// Where people reach it, if that is news.
    pub address: Option<&'a str>,
}

/// Keeps a report unless a newer one came first. False means older news, and nothing changed.
pub async fn heard(conn: &mut PgConnection, id: Uuid, told: &Report<'_>) -> sqlx::Result<bool> {
    let kept = sqlx::query!(
        "update nodes set last_seen_at = engine.now(), report_sequence = $2, report = $3, agent_version = $4,
                address = coalesce($5, address)
         where id = $1 and report_sequence < $2",
        id,
        told.sequence,
        told.report,
        told.agent_version,
        told.address
    )
    .execute(conn)
    .await?;
    Ok(kept.rows_affected() == 1)
}

/// What a launch just brought is there before the node reports it. The next report says for itself what is.
pub async fn add_to_report(
    conn: &mut PgConnection,
    id: Uuid,
    (instance, generation): (Uuid, i64),
    workloads: &Value,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update nodes set report = jsonb_set(coalesce(report, '{"workloads": [], "gpus": []}'), '{workloads}', $4 || (
               select coalesce(jsonb_agg(other), '[]') from jsonb_array_elements(report -> 'workloads') other
               where (other ->> 'instance_id')::uuid <> $2 or (other ->> 'generation')::bigint <> $3))
           where id = $1"#,
        id,
        instance,
        generation,
        workloads
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Nodes that should speak and have not for so long, by id. None while nobody has listened for that long.
pub async fn silent(conn: &mut PgConnection, seconds: f64) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select id from nodes
         where status in ('active', 'drained') and last_seen_at < engine.now() - make_interval(secs => $1)
           and not exists (select from listening where since > engine.now() - make_interval(secs => $1)
               or until < engine.now() - make_interval(secs => $2))
         order by id",
        seconds,
        BREAK_SECONDS
    )
    .fetch_all(conn)
    .await
}
