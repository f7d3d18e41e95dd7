//! Meters: what the platform counts itself. Each has one row, held while it is moved on, and the records that this yields
//! are written in the same transaction: no second is counted twice, whoever looks and however often.

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use domain::metering::{ALLOCATION_SECONDS, Counted, GPU_SECONDS, Look, Meter, Pending, SESSION_SECONDS};
use domain::{PolicyKey, UsageSource};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::policies::{self, Subject};
use crate::usage_records::{self, Attribution, NewRecord};

/// Two reports of a node that are further apart say nothing of the time between: it may have been lost.
pub const BELIEVED: TimeDelta = TimeDelta::seconds(60);

/// Starts counting an instance that runs. One that is counted already goes on from now.
pub async fn open(conn: &mut PgConnection, instance: Uuid, correlation_id: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into meters (subject_id, kind, org_id, project_id, metered_until, running, correlation_id)
         select id, 'instance', org_id, project_id, date_trunc('second', engine.now()), true, $2
         from app_instances where id = $1
         on conflict (subject_id) do update set running = true, closed_at = null, correlation_id = excluded.correlation_id,
             metered_until = greatest(meters.metered_until, excluded.metered_until)",
        instance,
        correlation_id
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A report of a node came: these instances of it run, and no others. Lock the node first.
pub async fn node_reported(conn: &mut PgConnection, node: Uuid, running: &[Uuid]) -> sqlx::Result<()> {
    let rows = sqlx::query_as!(
        Row,
        r#"select m.subject_id, m.org_id, m.project_id, m.metered_until, m.running, m.pending_from, m.seconds, m.gpu_seconds,
                  m.correlation_id, i.id as "app_instance_id?", i.allocation_id, i.app_slug as "app_slug?",
                  i.operating_mode as "operating_mode?", i.control_plane_scope as "control_plane_scope?",
                  i.runtime_backend as "runtime_backend?", control_plane_component(v.manifest) as "component?",
                  coalesce((i.resources ->> 'gpu_count')::bigint, 0) as "gpus!", engine.now() as "now!",
                  i.id = any($2) as "runs!", false as "ended!"
           from meters m join app_instances i on i.id = m.subject_id join allocations a on a.id = i.allocation_id
           left join apps p on p.slug = i.app_slug
           left join app_versions v on v.app_id = p.id and v.version = i.version
           where m.kind = 'instance' and m.closed_at is null and a.node_id = $1
           order by m.subject_id for update of m"#,
        node,
        running
    )
    .fetch_all(&mut *conn)
    .await?;
    settle(conn, rows, Some(BELIEVED)).await?;
    Ok(())
}

/// Counts up to now, writes what is left and stops. Closing what is closed changes nothing.
pub async fn close(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<()> {
    let rows = sqlx::query_as!(
        Row,
        r#"select m.subject_id, m.org_id, m.project_id, m.metered_until, m.running, m.pending_from, m.seconds, m.gpu_seconds,
                  m.correlation_id, i.id as "app_instance_id?", i.allocation_id, i.app_slug as "app_slug?",
                  i.operating_mode as "operating_mode?", i.control_plane_scope as "control_plane_scope?",
                  i.runtime_backend as "runtime_backend?", control_plane_component(v.manifest) as "component?",
                  coalesce((i.resources ->> 'gpu_count')::bigint, 0) as "gpus!", engine.now() as "now!",
                  m.running as "runs!", true as "ended!"
           from meters m join app_instances i on i.id = m.subject_id
           left join apps p on p.slug = i.app_slug
           left join app_versions v on v.app_id = p.id and v.version = i.version
           where m.subject_id = $1 and m.kind = 'instance' and m.closed_at is null for update of m"#,
        instance
    )
    .fetch_all(&mut *conn)
    .await?;
    settle(conn, rows, Some(BELIEVED)).await?;
    Ok(())
}

/// Makes a meter for every allocation that has none, from when it became active.
pub async fn open_allocations(conn: &mut PgConnection) -> sqlx::Result<u64> {
    let opened = sqlx::query!(
        "insert into meters (subject_id, kind, org_id, project_id, metered_until, running, correlation_id)
         select id, 'allocation', org_id, project_id, date_trunc('second', activated_at), true, correlation_id
         from allocations a where activated_at is not null and not exists (select from meters m where m.subject_id = a.id)
         on conflict (subject_id) do nothing"
    )
    .execute(conn)
    .await?;
    Ok(opened.rows_affected())
}

/// Counts a batch of allocations with ids above `after`, up to now or to their release, and no more of the past than fits
/// into one transaction. Answers above which id to go on: the same once more while one of them is behind; `None` when
/// there are no more. Time while the node is given up for lost is nobody's.
pub async fn accrue(conn: &mut PgConnection, after: Option<Uuid>, limit: i64) -> sqlx::Result<Option<Uuid>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select m.subject_id, m.org_id, m.project_id, m.metered_until, m.running, m.pending_from, m.seconds, m.gpu_seconds,
                  m.correlation_id, null::uuid as "app_instance_id?", a.id as "allocation_id?", null as "app_slug?",
                  null as "operating_mode?", null as "control_plane_scope?", null as "runtime_backend?",
                  null as "component?",
                  greatest(a.gpu_count, 1)::bigint as "gpus!", coalesce(a.released_at, engine.now()) as "now!",
                  n.status <> 'unavailable' as "runs!", a.released_at is not null as "ended!"
           from meters m join allocations a on a.id = m.subject_id join nodes n on n.id = a.node_id
           where m.kind = 'allocation' and m.closed_at is null and ($1::uuid is null or m.subject_id > $1)
           order by m.subject_id limit $2 for update of m"#,
        after,
        limit
    )
    .fetch_all(&mut *conn)
    .await?;
    let last = rows.last().map(|row| row.subject_id);
    let behind = settle(conn, rows, None).await?;
    Ok(if behind { after.or(Some(Uuid::nil())) } else { last })
}

/// From when on what the meters of a project saw is not written down yet, or may still count; `None` where nothing is. An
/// instance that nobody reported for longer than is believed does not count until somebody does.
pub async fn unwritten_since(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Option<DateTime<Utc>>> {
    sqlx::query_scalar!(
        "select min(coalesce(pending_from, metered_until)) from meters
         where project_id = $1 and closed_at is null and (pending_from is not null or (running
             and (kind = 'allocation' or metered_until >= (select engine.now()) - make_interval(secs => $2))))",
        project,
        BELIEVED.as_seconds_f64()
    )
    .fetch_one(conn)
    .await
}

/// A meter, what it is of, and what was seen of that just now.
struct Row {
    subject_id: Uuid,
    org_id: Uuid,
    project_id: Uuid,
    metered_until: DateTime<Utc>,
    running: bool,
    pending_from: Option<DateTime<Utc>>,
    seconds: i64,
    gpu_seconds: i64,
    correlation_id: String,
    app_instance_id: Option<Uuid>,
    allocation_id: Option<Uuid>,
    app_slug: Option<String>,
    operating_mode: Option<String>,
    control_plane_scope: Option<String>,
    runtime_backend: Option<String>,
    component: Option<String>,
    gpus: i64,
    now: DateTime<Utc>,
    runs: bool,
    /// Nothing more is to come.
    ended: bool,
}

impl Row {
    fn meter(&self) -> Meter {
        let (seconds, gpu_seconds) = (self.seconds, self.gpu_seconds);
        let pending = self.pending_from.map(|from| Pending { from, seconds, gpu_seconds });
        Meter { metered_until: self.metered_until, running: self.running, pending }
    }

    /// An instance is counted in seconds and, where it has GPUs, in theirs; an allocation in those of its GPUs alone.
    fn records(&self, counted: &Counted) -> Vec<NewRecord> {
        let one = |usage_source, unit: &str, quantity| NewRecord {
            id: Uuid::now_v7(),
            of: Attribution {
                org_id: self.org_id,
                project_id: self.project_id,
                app_instance_id: self.app_instance_id,
                allocation_id: self.allocation_id,
                app_slug: self.app_slug.clone(),
                operating_mode: self.operating_mode.clone(),
                control_plane_scope: self.control_plane_scope.clone(),
                runtime_backend: self.runtime_backend.clone(),
                control_plane_component: self.component.clone(),
            },
            usage_source,
            usage_unit: unit.to_owned(),
            quantity,
            occurred_at: counted.from,
            window: counted.window,
            correlation_id: self.correlation_id.clone(),
            reference_id: None,
            metadata: json!({}),
            source: format!("{PLATFORM}/meters/{}", self.subject_id),
            // No two records of a meter begin at the same second.
            event_id: format!("{unit}:{}", counted.from.timestamp()),
        };
        match self.app_instance_id {
            None => vec![one(UsageSource::Allocation, ALLOCATION_SECONDS, counted.gpu_seconds)],
            Some(_) => {
                let mut records = vec![one(UsageSource::AppRuntime, SESSION_SECONDS, counted.seconds)];
                if counted.gpu_seconds > 0 {
                    records.push(one(UsageSource::AppRuntime, GPU_SECONDS, counted.gpu_seconds));
                }
                records
            }
        }
    }
}

/// What the platform counts has sources of its own, which nobody else may use.
pub const PLATFORM: &str = "/platform";

/// How wide the billing windows of a project are.
pub async fn window_seconds(conn: &mut PgConnection, (org, project): (Uuid, Uuid)) -> sqlx::Result<i64> {
    let subject = Subject { user: None, project: Some(project), org: Some(org) };
    policies::whole_number(conn, PolicyKey::BillingWindowSeconds, subject).await
}

/// Moves the meters on and writes what is complete. Answers whether one is not at the present yet.
async fn settle(conn: &mut PgConnection, rows: Vec<Row>, trusts: Option<TimeDelta>) -> sqlx::Result<bool> {
    let (mut records, mut widths, mut behind) = (Vec::new(), HashMap::new(), false);
    for row in &rows {
        let width = match widths.get(&row.project_id) {
            Some(width) => *width,
            None => window_seconds(conn, (row.org_id, row.project_id)).await?,
        };
        widths.insert(row.project_id, width);
        let mut meter = row.meter();
        let look = Look { at: row.now, running: row.runs, gpus: row.gpus };
        let mut complete = meter.look(look, trusts, width);
        let ended = row.ended && !meter.is_behind(row.now);
        if ended {
            complete.extend(meter.close(width));
        }
        behind |= meter.is_behind(row.now);
        records.extend(complete.iter().flat_map(|counted| row.records(counted)));
        keep(conn, row, &meter, ended).await?;
    }
    usage_records::add(conn, &records).await?;
    Ok(behind)
}

async fn keep(conn: &mut PgConnection, row: &Row, meter: &Meter, ended: bool) -> sqlx::Result<()> {
    let pending = meter.pending;
    sqlx::query!(
        "update meters set metered_until = $2, running = $3, pending_from = $4, seconds = $5, gpu_seconds = $6,
                closed_at = case when $7 then engine.now() end
         where subject_id = $1",
        row.subject_id,
        meter.metered_until,
        meter.running,
        pending.map(|pending| pending.from),
        pending.map_or(0, |pending| pending.seconds),
        pending.map_or(0, |pending| pending.gpu_seconds),
        ended
    )
    .execute(conn)
    .await?;
    Ok(())
}
