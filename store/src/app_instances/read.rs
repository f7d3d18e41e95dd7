//! Reading instances: one, a page, and those that stand in the way of something's end.

use domain::InstanceStatus;
use sqlx::{PgConnection, Postgres, QueryBuilder};
use uuid::Uuid;

use super::AppInstance;
use crate::Slice;

/// What a list is narrowed to; nothing means everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub project: Option<Uuid>,
    pub status: Vec<InstanceStatus>,
    pub app: Option<String>,
    pub version: Option<String>,
    pub allocation: Option<Uuid>,
    pub newest_first: bool,
}

pub async fn list(conn: &mut PgConnection, filter: &Filter, slice: Slice) -> sqlx::Result<Vec<AppInstance>> {
    let mut query = QueryBuilder::<Postgres>::new("select id from app_instances where true");
    if let Some(project) = filter.project {
        query.push(" and project_id = ").push_bind(project);
    }
    if !filter.status.is_empty() {
        let words: Vec<&str> = filter.status.iter().map(|status| status.as_str()).collect();
        query.push(" and status = any(").push_bind(words).push(")");
    }
    if let Some(app) = &filter.app {
        query.push(" and app_slug = ").push_bind(app);
    }
    if let Some(version) = &filter.version {
        query.push(" and version = ").push_bind(version);
    }
    if let Some(allocation) = filter.allocation {
        query.push(" and allocation_id = ").push_bind(allocation);
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
pub async fn of(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<AppInstance>> {
    sqlx::query_as!(
        AppInstance,
        "select id, org_id, project_id, app_slug, version, target_version, previous_version, display_name, status, status_reason,
                status_message, failed_during, generation, operating_mode, control_plane_scope, runtime_backend, allocation_id,
                placement_intent, config, asked_config, resources, variant, packages, credentials, operator_service_account_id, endpoints,
                last_operation, correlation_id, created_by, created_at, updated_at, activated_at, decommissioned_at
         from app_instances where id = any($1) order by id",
        ids
    )
    .fetch_all(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<AppInstance>> {
    Ok(of(conn, &[id]).await?.pop())
}

/// Held still until the transaction ends.
pub async fn find_locked(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<AppInstance>> {
    sqlx::query_as!(
        AppInstance,
        "select id, org_id, project_id, app_slug, version, target_version, previous_version, display_name, status, status_reason,
                status_message, failed_during, generation, operating_mode, control_plane_scope, runtime_backend, allocation_id,
                placement_intent, config, asked_config, resources, variant, packages, credentials, operator_service_account_id, endpoints,
                last_operation, correlation_id, created_by, created_at, updated_at, activated_at, decommissioned_at
         from app_instances where id = $1 for update",
        id
    )
    .fetch_optional(conn)
    .await
}

/// The instances for which this version serves, is the target, or is what a rollback returns to; at most `limit`, by id.
pub async fn using_version(
    conn: &mut PgConnection,
    app_slug: &str,
    version: &str,
    limit: i64,
) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select id from app_instances
         where app_slug = $1 and status <> 'decommissioned'
           and (version = $2 or target_version = $2 or previous_version = $2)
         order by id limit $3",
        app_slug,
        version,
        limit
    )
    .fetch_all(conn)
    .await
}

/// The instances that an allocation carries and whose end its release waits for.
pub async fn on_allocation(conn: &mut PgConnection, allocation: Uuid) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select id from app_instances where allocation_id = $1 and status <> 'decommissioned' order by id",
        allocation
    )
    .fetch_all(conn)
    .await
}

/// The instances of a project that have not ended, by id.
pub async fn standing_in(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select id from app_instances where project_id = $1 and status not in ('decommissioning', 'decommissioned')
         order by id",
        project
    )
    .fetch_all(conn)
    .await
}

/// How many instances stand on a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neighbours {
    pub all: i32,
    /// Those of versions that need the node alone.
    pub loners: i32,
}

/// Whoever's. An instance that asks counts only others, and of those only such as hold something already: of two that come
/// at once, the first to take is there and the second is not.
pub async fn neighbours(
    conn: &mut PgConnection,
    node: Uuid,
    asking: Option<Uuid>,
) -> sqlx::Result<Neighbours> {
    sqlx::query_as!(
        Neighbours,
        r#"select count(*)::integer as "all!",
                  count(*) filter (where exists (
                      select from app_instance_releases r join app_versions v on v.version = r.version
                          join apps p on p.id = v.app_id and p.slug = i.app_slug
                      where r.instance_id = i.id and r.standing in ('serving', 'target')
                        and v.manifest #>> '{version,compatibility,requires_exclusive_node}' = 'true'))::integer as "loners!"
           from app_instances i join allocations a on a.id = i.allocation_id
           where a.node_id = $1 and i.status not in ('requested', 'decommissioned')
             and ($2::uuid is null or (i.id <> $2 and exists (
                 select from resource_ledger l where l.instance_id = i.id
                 group by l.kind, l.resource having sum(l.quantity) > 0)))"#,
        node,
        asking
    )
    .fetch_one(conn)
    .await
}

/// The instances of this status that stand on a node, by id.
pub async fn on_node(conn: &mut PgConnection, node: Uuid, status: InstanceStatus) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select i.id from app_instances i join allocations a on a.id = i.allocation_id
         where a.node_id = $1 and i.status = $2 order by i.id",
        node,
        status.as_str()
    )
    .fetch_all(conn)
    .await
}

/// The instances that run by their own word on nodes that were given up for lost, with their nodes; by id.
pub async fn running_on_lost_nodes(conn: &mut PgConnection) -> sqlx::Result<Vec<(Uuid, Uuid)>> {
    let rows = sqlx::query!(
        "select i.id, n.id as node_id from app_instances i
         join allocations a on a.id = i.allocation_id join nodes n on n.id = a.node_id
         where i.status = 'running' and n.status = 'unavailable' order by i.id"
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.node_id)).collect())
}

/// Those of these instances whose node was given up for lost.
pub async fn on_lost_nodes(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select i.id from app_instances i
         join allocations a on a.id = i.allocation_id join nodes n on n.id = a.node_id
         where i.id = any($1) and n.status = 'unavailable'",
        ids
    )
    .fetch_all(conn)
    .await
}

/// The instances that should be found on a node: those that run, and those that did until it fell silent. By id.
pub async fn expected_on(conn: &mut PgConnection, node: Uuid) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select i.id from app_instances i join allocations a on a.id = i.allocation_id
         where a.node_id = $1
           and (i.status = 'running' or (i.status = 'failed' and i.status_reason = 'node_unreachable'))
         order by i.id",
        node
    )
    .fetch_all(conn)
    .await
}

/// Instances that failed because their node fell silent, whose node speaks again: each with its node.
pub async fn unreachable_on_live_nodes(conn: &mut PgConnection) -> sqlx::Result<Vec<(Uuid, Uuid)>> {
    let rows = sqlx::query!(
        "select i.id, n.id as node_id from app_instances i
         join allocations a on a.id = i.allocation_id join nodes n on n.id = a.node_id
         where i.status = 'failed' and i.status_reason = 'node_unreachable' and n.status in ('active', 'drained')
         order by i.id"
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.node_id)).collect())
}

/// The instances that a run brings or changes on a node that was given up for lost, and of which nothing is said yet; each with
/// its node, by id.
pub async fn changing_on_lost_nodes(conn: &mut PgConnection) -> sqlx::Result<Vec<(Uuid, Uuid)>> {
    let rows = sqlx::query!(
        "select i.id, n.id as node_id from app_instances i
         join allocations a on a.id = i.allocation_id join nodes n on n.id = a.node_id
         where i.status in ('deploying', 'upgrading', 'rolling_back') and i.status_reason is null
           and n.status = 'unavailable'
         order by i.id"
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.node_id)).collect())
}

/// Those of which it is said that their node is lost, and whose node speaks again; by id.
pub async fn changing_on_live_nodes(conn: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select i.id from app_instances i
         join allocations a on a.id = i.allocation_id join nodes n on n.id = a.node_id
         where i.status in ('deploying', 'upgrading', 'rolling_back') and i.status_reason = 'node_unreachable'
           and n.status in ('active', 'drained')
         order by i.id"
    )
    .fetch_all(conn)
    .await
}
