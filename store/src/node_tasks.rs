//! What nodes are asked to do. One idempotency key is one task, however often its step repeats; a task is handed out again
//! when its lease runs out, and finished once.

use chrono::{DateTime, TimeDelta, Utc};
use domain::TaskStatus;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::parsed;

#[derive(Clone, Debug)]
pub struct NodeTask {
    pub id: Uuid,
    pub node_id: Uuid,
    pub project_id: Option<Uuid>,
    pub instance_id: Option<Uuid>,
    pub kind: String,
    pub idempotency_key: String,
    pub generation: i64,
    pub epoch: i64,
    pub run_id: Option<Uuid>,
    pub signal: Option<String>,
    pub input: Value,
    pub sealed: Option<String>,
    pub status: String,
    pub lease_expires_at: Option<DateTime<Utc>>,
    pub handed_out: i32,
    pub progress: Option<Value>,
    pub result: Option<Value>,
    pub correlation_id: String,
    pub created_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl NodeTask {
    pub fn status(&self) -> sqlx::Result<TaskStatus> {
        parsed(&self.status)
    }
}

pub struct NewNodeTask<'a> {
    /// Made by the caller, since what is sealed is bound to it.
    pub id: Uuid,
    pub node_id: Uuid,
    pub org_id: Option<Uuid>,
    pub project_id: Option<Uuid>,
    pub instance_id: Option<Uuid>,
    pub kind: &'a str,
    pub idempotency_key: &'a str,
    pub generation: i64,
    pub epoch: i64,
    /// The run to wake, and the name of the signal it waits for.
    pub wakes: Option<(Uuid, &'a str)>,
    pub input: &'a Value,
    pub sealed: Option<&'a str>,
    pub correlation_id: &'a str,
    pub trace_id: Option<&'a str>,
}

/// What a task's secrets are sealed for: this row and no other.
pub fn sealed_for(id: Uuid) -> String {
    format!("node_tasks.sealed:{id}")
}

/// Answers the task of this key: the new one, or the one that an earlier try made, now of the later epoch.
pub async fn insert(conn: &mut PgConnection, new: &NewNodeTask<'_>) -> sqlx::Result<Uuid> {
    let (run_id, signal) = new.wakes.unzip();
    sqlx::query_scalar!(
        "insert into node_tasks (id, node_id, org_id, project_id, instance_id, kind, idempotency_key, generation, epoch,
                run_id, signal, input, sealed, correlation_id, trace_id)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
         on conflict (idempotency_key) do update set epoch = greatest(node_tasks.epoch, excluded.epoch)
         returning id",
        new.id,
        new.node_id,
        new.org_id,
        new.project_id,
        new.instance_id,
        new.kind,
        new.idempotency_key,
        new.generation,
        new.epoch,
        run_id,
        signal,
        new.input,
        new.sealed,
        new.correlation_id,
        new.trace_id
    )
    .fetch_one(conn)
    .await
}

/// A later try asks for what an earlier one asked for already; nodes then refuse the earlier.
pub async fn raise_epoch(conn: &mut PgConnection, id: Uuid, epoch: i64) -> sqlx::Result<()> {
    sqlx::query!("update node_tasks set epoch = greatest(epoch, $2) where id = $1", id, epoch)
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn find(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<NodeTask>> {
    sqlx::query_as!(
        NodeTask,
        "select id, node_id, project_id, instance_id, kind, idempotency_key, generation, epoch, run_id, signal, input, sealed,
                status, lease_expires_at, handed_out, progress, result, correlation_id, created_at, finished_at
         from node_tasks where id = $1",
        id
    )
    .fetch_optional(conn)
    .await
}

pub async fn find_by_key(conn: &mut PgConnection, key: &str) -> sqlx::Result<Option<NodeTask>> {
    sqlx::query_as!(
        NodeTask,
        "select id, node_id, project_id, instance_id, kind, idempotency_key, generation, epoch, run_id, signal, input, sealed,
                status, lease_expires_at, handed_out, progress, result, correlation_id, created_at, finished_at
         from node_tasks where idempotency_key = $1",
        key
    )
    .fetch_optional(conn)
    .await
}

/// What a run asked of nodes and waits or waited for, newest first.
pub async fn of_run(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<Vec<NodeTask>> {
    sqlx::query_as!(
        NodeTask,
        "select id, node_id, project_id, instance_id, kind, idempotency_key, generation, epoch, run_id, signal, input, sealed,
                status, lease_expires_at, handed_out, progress, result, correlation_id, created_at, finished_at
         from node_tasks where run_id = $1 order by id desc",
        run
    )
    .fetch_all(conn)
    .await
}

/// What nodes told of the tasks that a run waits for: the signal that each will wake it with, and how far it is.
pub async fn progress_of(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<Vec<(String, Value)>> {
    let rows = sqlx::query!(
        r#"select signal as "signal!", progress as "progress!" from node_tasks
           where run_id = $1 and finished_at is null and signal is not null and progress is not null order by id"#,
        run
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.signal, row.progress)).collect())
}

/// How long nodes usually took for tasks of each kind for instances of an app, in seconds. A stack's count as those of one
/// container: an app is either.
pub async fn usual_seconds(conn: &mut PgConnection, app_slug: &str) -> sqlx::Result<Vec<(String, f64)>> {
    let rows = sqlx::query!(
        r#"select t.kind as "kind!",
                  percentile_cont(0.5) within group
                      (order by extract(epoch from t.finished_at - t.created_at)::double precision) as "seconds!"
           from (select regexp_replace(n.kind, '^compose\.', 'oci.') as kind, n.created_at, n.finished_at
                 from node_tasks n join app_instances i on i.id = n.instance_id
                 where i.app_slug = $1 and n.status = 'succeeded' order by n.id desc limit 500) t
           group by t.kind"#,
        app_slug
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.kind, row.seconds)).collect())
}

/// Hands the node its oldest task that nobody works on. Two polls of one node get two different tasks.
pub async fn hand_out(
    conn: &mut PgConnection,
    node: Uuid,
    lease: TimeDelta,
) -> sqlx::Result<Option<NodeTask>> {
    sqlx::query_as!(
        NodeTask,
        "update node_tasks set status = 'handed_out', handed_out = handed_out + 1, updated_at = engine.now(),
                lease_expires_at = engine.now() + make_interval(secs => $2)
         where id = (select id from node_tasks
                     where node_id = $1 and finished_at is null
                       and (lease_expires_at is null or lease_expires_at <= engine.now())
                     order by id limit 1 for update skip locked)
         returning id, node_id, project_id, instance_id, kind, idempotency_key, generation, epoch, run_id, signal, input,
                sealed, status, lease_expires_at, handed_out, progress, result, correlation_id, created_at, finished_at",
        node,
        lease.as_seconds_f64()
    )
    .fetch_optional(conn)
    .await
}

/// The nodes that could be handed a task right now.
pub async fn nodes_with_work(conn: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select distinct node_id from node_tasks
         where finished_at is null and (lease_expires_at is null or lease_expires_at <= engine.now())"
    )
    .fetch_all(conn)
    .await
}

/// The node still works on it. False when it is not this node's to work on any more.
pub async fn progressed(
    conn: &mut PgConnection,
    node: Uuid,
    id: Uuid,
    progress: &Value,
    lease: TimeDelta,
) -> sqlx::Result<bool> {
    let kept = sqlx::query!(
        "update node_tasks set progress = $3, lease_expires_at = engine.now() + make_interval(secs => $4),
                updated_at = engine.now()
         where id = $2 and node_id = $1 and status = 'handed_out'",
        node,
        id,
        progress,
        lease.as_seconds_f64()
    )
    .execute(conn)
    .await?;
    Ok(kept.rows_affected() == 1)
}

/// Keeps a result. `None` when the task was finished before: the first result stands. The instance is held first, as everybody
/// holds it before its tasks: a step that gives the node a task while the answer to another comes in must not meet it
/// halfway.
pub async fn finish(
    conn: &mut PgConnection,
    node: Uuid,
    id: Uuid,
    status: TaskStatus,
    result: &Value,
) -> sqlx::Result<Option<NodeTask>> {
    if !TaskStatus::HandedOut.may_become(status) {
        return Ok(None);
    }
    sqlx::query!(
        "select i.id from app_instances i join node_tasks t on t.instance_id = i.id where t.id = $1 for key share of i",
        id
    )
    .fetch_optional(&mut *conn)
    .await?;
    sqlx::query_as!(
        NodeTask,
        "update node_tasks set status = $3, result = $4, sealed = null, lease_expires_at = null, finished_at = engine.now(),
                updated_at = engine.now()
         where id = $2 and node_id = $1 and status = 'handed_out'
         returning id, node_id, project_id, instance_id, kind, idempotency_key, generation, epoch, run_id, signal, input,
                sealed, status, lease_expires_at, handed_out, progress, result, correlation_id, created_at, finished_at",
        node,
        id,
        status.as_str(),
        result
    )
    .fetch_optional(conn)
    .await
}

/// The launches of these artifacts that no node has answered for, held still. The artifacts are held, so no other launch of
/// them comes into being meanwhile.
pub async fn launches_of(conn: &mut PgConnection, artifacts: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select t.id from node_tasks t
         where t.finished_at is null and t.kind in ('oci.launch', 'compose.launch')
           and exists (select 1 from app_instance_artifacts a where a.instance_id = t.instance_id
               and a.standing = 'target' and a.artifact_id = any ($1))
         order by t.id for update",
        artifacts
    )
    .fetch_all(conn)
    .await
}

/// The same of those that carry the secret of this credential, which is held: an instance may have been given more than the
/// version asks for that it goes to.
pub async fn launches_with(conn: &mut PgConnection, credential: Uuid) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select t.id from node_tasks t
         where t.finished_at is null and t.kind in ('oci.launch', 'compose.launch')
           and exists (
               select 1 from app_instances i
               left join app_instance_releases r on r.instance_id = i.id and r.standing = 'target'
               join apps a on a.slug = i.app_slug
               join app_versions v on v.app_id = a.id and v.version = coalesce(r.version, i.version)
               cross join lateral jsonb_each_text(i.credentials) named
               where i.id = t.instance_id and named.value = $1::uuid::text
                 and jsonb_path_exists(v.manifest, '$.version.runtime_requirements.credential_classes[*].class ? (@ == $named)',
                                       jsonb_build_object('named', named.key)))
         order by t.id for update",
        credential
    )
    .fetch_all(conn)
    .await
}

/// Ends tasks that are held and that no node has answered for: what no node took is withdrawn, what one took counts as failed,
/// whatever it answers later.
pub async fn stop(conn: &mut PgConnection, tasks: &[Uuid], result: &Value) -> sqlx::Result<Vec<NodeTask>> {
    sqlx::query_as!(
        NodeTask,
        "update node_tasks set status = case status when 'queued' then 'withdrawn' else 'failed' end, result = $2,
                sealed = null, lease_expires_at = null, finished_at = engine.now(), updated_at = engine.now()
         where id = any ($1) and finished_at is null
         returning id, node_id, project_id, instance_id, kind, idempotency_key, generation, epoch, run_id, signal, input,
                sealed, status, lease_expires_at, handed_out, progress, result, correlation_id, created_at, finished_at",
        tasks,
        result
    )
    .fetch_all(conn)
    .await
}

/// Ends a task that a node took and will not answer for: it counts as failed, whatever the node says later.
pub async fn give_up(conn: &mut PgConnection, idempotency_key: &str, result: &Value) -> sqlx::Result<()> {
    sqlx::query!(
        "update node_tasks set status = 'failed', result = $2, sealed = null, lease_expires_at = null,
                finished_at = engine.now(), updated_at = engine.now()
         where idempotency_key = $1 and status = 'handed_out'",
        idempotency_key,
        result
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The ports of a node that a launch found taken within the last hour, by somebody of whom the platform does not know.
pub async fn ports_found_taken(conn: &mut PgConnection, node: Uuid) -> sqlx::Result<Vec<i32>> {
    sqlx::query_scalar!(
        r#"select distinct port::integer as "port!"
           from node_tasks t, jsonb_path_query(t.input, 'strict $.**.ports[*].host') port
           where t.node_id = $1 and t.status = 'failed' and t.result ->> 'reason' = 'port_unavailable'
             and t.finished_at > engine.now() - interval '1 hour'"#,
        node
    )
    .fetch_all(conn)
    .await
}

/// Takes a task back that no node has seen. False when one has, and it must be undone on the node instead.
pub async fn withdraw(conn: &mut PgConnection, idempotency_key: &str) -> sqlx::Result<bool> {
    let taken = sqlx::query!(
        "update node_tasks set status = 'withdrawn', sealed = null, finished_at = coalesce(finished_at, engine.now()),
                updated_at = engine.now()
         where idempotency_key = $1 and status in ('queued', 'withdrawn')",
        idempotency_key
    )
    .execute(conn)
    .await?;
    Ok(taken.rows_affected() == 1)
}

/// Takes a task back that is to be answered no more. False where a node has or had it: unless that answered already, the task counts
/// as failed with `late`, and is handed out to nobody again.
pub async fn take_back(conn: &mut PgConnection, idempotency_key: &str, late: &Value) -> sqlx::Result<bool> {
    let unseen = withdraw(conn, idempotency_key).await?;
    if !unseen {
        give_up(conn, idempotency_key, late).await?;
    }
    Ok(unseen)
}

/// A question was answered or given up: nothing of it is kept. A node that answers after that finds nobody.
pub async fn forget(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from node_tasks where id = $1", id).execute(conn).await?;
    Ok(())
}

/// Questions, of these kinds, that nobody waits for any more: the process of their asker died before it could forget them.
pub async fn forget_abandoned(conn: &mut PgConnection, kinds: &[String], limit: i64) -> sqlx::Result<u64> {
    let gone = sqlx::query!(
        "delete from node_tasks where id in (
             select id from node_tasks
             where run_id is null and kind = any ($1) and created_at < engine.now() - interval '5 minutes'
             order by id limit $2 for update)",
        kinds,
        limit
    )
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}
