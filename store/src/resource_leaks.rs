//! What is held by instances that should hold nothing: those that ended or failed, and those beside whose workload an older
//! one was left. One that served until its node fell silent holds what it will have again when the node returns.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;
use crate::resource_ledger::{self as ledger, Held};

#[derive(Clone, Debug)]
pub struct Leak {
    pub instance_id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: String,
    pub status: String,
    pub held: Vec<Held>,
    /// When the oldest of it was taken.
    pub since: DateTime<Utc>,
}

/// By instance.
pub async fn list(conn: &mut PgConnection, slice: Slice) -> sqlx::Result<Vec<Leak>> {
    let rows = sqlx::query!(
        r#"with balance as (
               select instance_id, kind, min(at) as since from resource_ledger
               where ($1::uuid is null or instance_id > $1)
               group by instance_id, kind, resource having sum(quantity) <> 0)
           select i.id, i.org_id, i.project_id, i.app_slug, i.status, min(b.since) as "since!"
           from balance b join app_instances i on i.id = b.instance_id
           group by i.id
           having i.status = 'decommissioned'
               or (i.status = 'failed' and (i.status_reason is distinct from 'node_unreachable'
                   or not exists (select from app_instance_releases s
                                  where s.instance_id = i.id and s.standing = 'serving')))
               or (i.status = 'running' and count(*) filter (where b.kind = 'workload') > 1)
           order by i.id limit $2"#,
        slice.after,
        slice.limit
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut leaks = Vec::new();
    for row in rows {
        leaks.push(Leak {
            instance_id: row.id,
            org_id: row.org_id,
            project_id: row.project_id,
            app_slug: row.app_slug,
            status: row.status,
            held: ledger::balance(conn, row.id).await?,
            since: row.since,
        });
    }
    Ok(leaks)
}
