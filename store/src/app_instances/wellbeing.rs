//! Whether instances that run also serve, as their nodes tell. It is the reason that an instance shows while it runs; a run
//! that acts on one has its turn first, and the next report sees what that leaves.

use domain::StatusReason;
use sqlx::PgConnection;
use uuid::Uuid;

const UNWELL: &str = StatusReason::ReadinessTimeout.as_str();

/// An instance that runs.
#[derive(Clone, Debug)]
pub struct Serving {
    pub id: Uuid,
    /// Of the workload that serves.
    pub generation: i64,
    pub unwell: bool,
}

/// Those of a node that nothing else is wrong with.
pub async fn serving_on(conn: &mut PgConnection, node: Uuid) -> sqlx::Result<Vec<Serving>> {
    sqlx::query_as!(
        Serving,
        r#"select i.id, r.generation, i.status_reason is not null as "unwell!" from app_instances i
           join allocations a on a.id = i.allocation_id
           join app_instance_releases r on r.instance_id = i.id and r.standing = 'serving'
           where a.node_id = $1 and i.status = 'running' and (i.status_reason is null or i.status_reason = $2)
           order by i.id"#,
        node,
        UNWELL
    )
    .fetch_all(conn)
    .await
}

/// Says why the instance does not serve, or that it serves again. One that is held is left alone.
pub async fn tell_whether_it_serves(
    conn: &mut PgConnection,
    id: Uuid,
    trouble: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_instances set status_reason = $2, status_message = $3, updated_at = engine.now()
         where id = (select id from app_instances where id = $1 and status = 'running'
                     and (status_reason is null or status_reason = $4) for update skip locked)",
        id,
        trouble.map(|_| UNWELL),
        trouble,
        UNWELL
    )
    .execute(conn)
    .await?;
    Ok(())
}
