//! Allocations: the part of a node that a project may use.

use chrono::{DateTime, Utc};
use domain::{AllocationStatus, CapacityShape};
use sqlx::{PgConnection, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::{Slice, parsed};

#[derive(Clone, Debug)]
pub struct Allocation {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub node_id: Uuid,
    pub capacity_shape: String,
    pub sku: String,
    pub accelerator: Option<String>,
    pub gpu_count: i32,
    /// Which GPUs of the node, by their index there.
    pub gpus: Vec<i32>,
    pub cpu_cores: i32,
    pub memory_gib: i32,
    pub status: String,
    pub created_by: Uuid,
    pub correlation_id: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub activated_at: Option<DateTime<Utc>>,
    pub released_at: Option<DateTime<Utc>>,
}

impl Allocation {
    pub fn status(&self) -> sqlx::Result<AllocationStatus> {
        parsed(&self.status)
    }

    pub fn shape(&self) -> sqlx::Result<CapacityShape> {
        parsed(&self.capacity_shape)
    }
}

pub struct NewAllocation<'a> {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub node_id: Uuid,
    pub shape: CapacityShape,
    pub sku: &'a str,
    pub accelerator: Option<&'a str>,
    pub gpu_count: i32,
    pub gpus: &'a [i32],
    pub cpu_cores: i32,
    pub memory_gib: i32,
    pub created_by: Uuid,
    pub correlation_id: &'a str,
}

/// Active from the start: the node is there and its capacity was counted in the same transaction.
pub async fn insert(conn: &mut PgConnection, new: &NewAllocation<'_>) -> sqlx::Result<Allocation> {
    sqlx::query_as!(
        Allocation,
        "insert into allocations (id, org_id, project_id, node_id, capacity_shape, sku, accelerator, gpu_count, cpu_cores,
                memory_gib, status, created_by, correlation_id, gpus, activated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'active', $11, $12, $13, engine.now())
         returning id, org_id, project_id, node_id, capacity_shape, sku, accelerator, gpu_count, gpus, cpu_cores, memory_gib,
                status, created_by, correlation_id, created_at, updated_at, activated_at, released_at",
        new.id,
        new.org_id,
        new.project_id,
        new.node_id,
        new.shape.as_str(),
        new.sku,
        new.accelerator,
        new.gpu_count,
        new.cpu_cores,
        new.memory_gib,
        new.created_by,
        new.correlation_id,
        new.gpus
    )
    .fetch_one(conn)
    .await
}

/// What a list is narrowed to; nothing means everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub project: Option<Uuid>,
    pub node: Option<Uuid>,
    pub status: Vec<AllocationStatus>,
    pub newest_first: bool,
}

pub async fn list(conn: &mut PgConnection, filter: &Filter, slice: Slice) -> sqlx::Result<Vec<Allocation>> {
    let mut query = QueryBuilder::<Postgres>::new("select id from allocations where true");
    if let Some(project) = filter.project {
        query.push(" and project_id = ").push_bind(project);
    }
    if let Some(node) = filter.node {
        query.push(" and node_id = ").push_bind(node);
    }
    if !filter.status.is_empty() {
        let words: Vec<&str> = filter.status.iter().map(|status| status.as_str()).collect();
        query.push(" and status = any(").push_bind(words).push(")");
    }
    slice.push_to(&mut query, filter.newest_first);
    let ids: Vec<Uuid> = query.build_query_scalar().fetch_all(&mut *conn).await?;
    let mut page = of(conn, &ids).await?;
    if filter.newest_first {
        page.reverse();
    }
    Ok(page)
}

/// Those of these ids that exist, by id.
pub async fn of(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<Allocation>> {
    sqlx::query_as!(
        Allocation,
        "select id, org_id, project_id, node_id, capacity_shape, sku, accelerator, gpu_count, gpus, cpu_cores, memory_gib,
                status, created_by, correlation_id, created_at, updated_at, activated_at, released_at
         from allocations where id = any($1) order by id",
        ids
    )
    .fetch_all(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Allocation>> {
    Ok(of(conn, &[id]).await?.pop())
}

/// Held still until the transaction ends: whoever takes from an allocation does so one after the other.
pub async fn find_locked(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Allocation>> {
    sqlx::query_as!(
        Allocation,
        "select id, org_id, project_id, node_id, capacity_shape, sku, accelerator, gpu_count, gpus, cpu_cores, memory_gib,
                status, created_by, correlation_id, created_at, updated_at, activated_at, released_at
         from allocations where id = $1 for update",
        id
    )
    .fetch_optional(conn)
    .await
}

/// What of a node is given away. Lock the node first, or the sum may be old news.
#[derive(Clone, Debug)]
pub struct Given {
    pub gpu_count: i64,
    pub cpu_cores: i64,
    pub memory_gib: i64,
    pub allocations: i64,
    /// By their index.
    pub gpus: Vec<i32>,
}

pub async fn given(conn: &mut PgConnection, node: Uuid) -> sqlx::Result<Given> {
    sqlx::query_as!(
        Given,
        r#"select coalesce(sum(gpu_count), 0) as "gpu_count!", coalesce(sum(cpu_cores), 0) as "cpu_cores!",
                  coalesce(sum(memory_gib), 0) as "memory_gib!", count(*) as "allocations!",
                  array(select unnest(gpus) from allocations where node_id = $1 and status <> 'released') as "gpus!"
           from allocations where node_id = $1 and status <> 'released'"#,
        node
    )
    .fetch_one(conn)
    .await
}

/// Moves an allocation along the table of legal moves. False when it stands elsewhere or the move is not legal.
pub async fn move_to(
    conn: &mut PgConnection,
    id: Uuid,
    from: AllocationStatus,
    to: AllocationStatus,
) -> sqlx::Result<bool> {
    if !from.may_become(to) {
        return Ok(false);
    }
    let moved = sqlx::query!(
        "update allocations set status = $3, updated_at = engine.now(),
                released_at = case when $3 = 'released' then engine.now() else released_at end
         where id = $1 and status = $2",
        id,
        from.as_str(),
        to.as_str()
    )
    .execute(conn)
    .await?;
    Ok(moved.rows_affected() == 1)
}

/// Organization and project of everybody who holds a part of the node, by project.
pub async fn holders(conn: &mut PgConnection, node: Uuid) -> sqlx::Result<Vec<(Uuid, Uuid)>> {
    let rows = sqlx::query!(
        "select distinct org_id, project_id from allocations where node_id = $1 and status <> 'released' order by project_id",
        node
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.org_id, row.project_id)).collect())
}
