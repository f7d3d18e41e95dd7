//! When the workloads of an instance last spoke, and which runs wait for their first word.

use sqlx::PgConnection;
use uuid::Uuid;

/// The workload spoke. Answers the run that waited for that, and the name it is told by; it is told once.
pub async fn beat(
    conn: &mut PgConnection,
    instance: Uuid,
    generation: i64,
) -> sqlx::Result<Option<(Uuid, String)>> {
    sqlx::query!(
        "insert into app_instance_heartbeats (instance_id, generation, last_at) values ($1, $2, engine.now())
         on conflict (instance_id, generation) do update set last_at = engine.now()",
        instance,
        generation
    )
    .execute(&mut *conn)
    .await?;
    let waited = sqlx::query!(
        r#"update app_instance_heartbeats h set run_id = null, signal = null
           from (select run_id, signal from app_instance_heartbeats where instance_id = $1 and generation = $2) old
           where h.instance_id = $1 and h.generation = $2 and h.run_id is not null
           returning old.run_id as "run_id!", old.signal as "signal!""#,
        instance,
        generation
    )
    .fetch_optional(conn)
    .await?;
    Ok(waited.map(|row| (row.run_id, row.signal)))
}

/// The run waits for the workload's first word. False when that was spoken already, and nothing is to be waited for.
pub async fn await_first(
    conn: &mut PgConnection,
    instance: Uuid,
    generation: i64,
    (run, signal): (Uuid, &str),
) -> sqlx::Result<bool> {
    let row = sqlx::query!(
        r#"insert into app_instance_heartbeats (instance_id, generation, run_id, signal) values ($1, $2, $3, $4)
           on conflict (instance_id, generation) do update set
               run_id = case when app_instance_heartbeats.last_at is null then $3 end,
               signal = case when app_instance_heartbeats.last_at is null then $4 end
           returning last_at is null as "silent!""#,
        instance,
        generation,
        run,
        signal
    )
    .fetch_one(conn)
    .await?;
    Ok(row.silent)
}

/// Whether the run still waits for a workload to speak.
pub async fn is_awaited_by(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from app_instance_heartbeats where run_id = $1) as "waits!""#,
        run
    )
    .fetch_one(conn)
    .await
}

/// A workload that serves and whose health is its own to tell.
#[derive(Clone, Copy, Debug)]
pub struct Speaker {
    pub instance_id: Uuid,
    pub generation: i64,
    /// Whether it spoke lately: of two beats that should have come, one did.
    pub speaks: bool,
}

/// Those of a node that have spoken at all.
pub async fn speakers_on(conn: &mut PgConnection, node: Uuid) -> sqlx::Result<Vec<Speaker>> {
    sqlx::query_as!(
        Speaker,
        r#"select h.instance_id, h.generation, coalesce(h.last_at > engine.now() - make_interval(secs =>
                  2 * (r.profile #>> '{health,interval_seconds}')::float8
                  + (r.profile #>> '{health,timeout_seconds}')::float8), true) as "speaks!"
           from app_instances i join allocations a on a.id = i.allocation_id
           join app_instance_releases r on r.instance_id = i.id and r.standing = 'serving'
           join app_instance_heartbeats h on h.instance_id = i.id and h.generation = r.generation
           where a.node_id = $1 and r.profile #>> '{health,kind}' = 'heartbeat' and h.last_at is not null"#,
        node
    )
    .fetch_all(conn)
    .await
}

/// The instance has ended.
pub async fn clear(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from app_instance_heartbeats where instance_id = $1", instance)
        .execute(conn)
        .await?;
    Ok(())
}
