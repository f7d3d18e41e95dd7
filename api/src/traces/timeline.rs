//! Puts the timeline together. Each source tells its next entries by itself; the page is cut from all of them. A new
//! source is one more kind, and one more arm here.

use api_types::{TraceEntry, TraceKind};
use domain::{CorrelationId, Permission, Principal, Reach};
use engine::inspect::{self, TraceFilter, traced_runs, traced_steps};
use sqlx::PgConnection;
use store::trace::{self, Window};
use uuid::Uuid;

use super::moment::Moment;

const SOURCES: [TraceKind; 7] = [
    TraceKind::Request,
    TraceKind::Workflow,
    TraceKind::Step,
    TraceKind::NodeTask,
    TraceKind::Event,
    TraceKind::Usage,
    TraceKind::Audit,
];

/// Up to `limit` entries after the moment that the principal may read.
pub(super) async fn entries(
    conn: &mut PgConnection,
    principal: &Principal,
    id: &CorrelationId,
    after: Option<&Moment>,
    limit: i64,
) -> sqlx::Result<Vec<TraceEntry>> {
    let mut all = Vec::new();
    for kind in SOURCES {
        let reach = principal.reach(key(kind));
        if reach.is_empty() {
            continue;
        }
        let window = Window { correlation_id: id.as_str(), after: Moment::bound(after, kind), limit };
        all.extend(source(conn, kind, &reach, window).await?);
    }
    // Stable: within a kind and an instant the database's order holds, as its bounds do.
    all.sort_by_key(|entry| (entry.at, entry.kind));
    all.truncate(usize::try_from(limit).unwrap_or_default());
    Ok(all)
}

/// What one must hold to read entries of this kind where they are listed.
fn key(kind: TraceKind) -> Permission {
    match kind {
        TraceKind::Request | TraceKind::Audit => Permission::AuditRead,
        TraceKind::Workflow | TraceKind::Step | TraceKind::NodeTask => Permission::WorkflowsRead,
        TraceKind::Event => Permission::EventsRead,
        TraceKind::Usage => Permission::BillingUsageRead,
    }
}

async fn source(
    conn: &mut PgConnection,
    kind: TraceKind,
    reach: &Reach,
    window: Window<'_>,
) -> sqlx::Result<Vec<TraceEntry>> {
    let rows = match kind {
        TraceKind::Workflow => return Ok(runs(kind, traced_runs(conn, &of_runs(reach, window)).await?)),
        TraceKind::Step => return Ok(runs(kind, traced_steps(conn, &of_runs(reach, window)).await?)),
        TraceKind::Request => trace::audited(conn, true, reach, window).await?,
        TraceKind::Audit => trace::audited(conn, false, reach, window).await?,
        TraceKind::NodeTask => trace::node_tasks(conn, reach, window).await?,
        TraceKind::Event => trace::events(conn, reach, window).await?,
        TraceKind::Usage => trace::usage(conn, reach, window).await?,
    };
    let shown = |row: trace::Traced| TraceEntry {
        at: row.at,
        kind,
        id: row.id,
        name: row.name,
        status: row.status,
        code: row.code,
        subject: row.subject,
        org_id: row.org_id,
        project_id: row.project_id,
        workflow_id: row.run_id,
        actor_id: row.actor_id,
        finished_at: row.finished_at,
        quantity: row.quantity,
    };
    Ok(rows.into_iter().map(shown).collect())
}

fn of_runs<'a>(reach: &'a Reach, window: Window<'a>) -> TraceFilter<'a> {
    TraceFilter {
        correlation_id: window.correlation_id,
        everything: reach.everything,
        orgs: &reach.orgs,
        projects: &reach.projects,
        after: window.after,
        limit: window.limit,
    }
}

fn runs(kind: TraceKind, rows: Vec<inspect::Traced>) -> Vec<TraceEntry> {
    let shown = |row: inspect::Traced| TraceEntry {
        at: row.at,
        kind,
        id: row.id,
        name: row.name,
        status: Some(row.state),
        code: row.code,
        subject: row.target,
        org_id: row.org_id,
        project_id: Some(row.project_id).filter(|project| *project != Uuid::nil()),
        workflow_id: Some(row.run_id),
        actor_id: None,
        finished_at: row.finished_at,
        quantity: None,
    };
    rows.into_iter().map(shown).collect()
}
