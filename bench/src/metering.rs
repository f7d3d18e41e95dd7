//! `bench metering`: how fast usage is taken beside a COPY of the same rows into a table with the same indexes, how a rollup
//! of many events uses memory, how long the usage of a month takes to read, and how soon an event reaches whoever follows.

mod stream;

use std::fs;
use std::path::Path;
use std::time::Instant;

use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use clap::Args;
use domain::{UsageSource, Window};
use serde_json::json;
use sqlx::{PgConnection, PgPool};
use store::usage_records::{self, Attribution, Filter, NewRecord};
use store::usage_sums::{self, GroupBy, Stretch, Width};
use store::{Slice, rating};
use uuid::Uuid;

use crate::failure::Failure;
use crate::measure::environment;
use crate::report::{Bar, Figure, Report, median, percentile, say, show};
use crate::server::{Server, execute};

#[derive(Debug, Args)]
pub struct MeteringArgs {
    /// Measure on this server, as its administrator, instead of on one of our own
    #[arg(long, env = "GPUAAS_BENCH_DATABASE_URL", value_name = "URL")]
    database_url: Option<String>,
    /// Few events, to see that everything works; nothing is recorded
    #[arg(long)]
    quick: bool,
}

/// As many as a request may bring.
const BATCH: usize = 500;
const PROJECT: Uuid = Uuid::from_u128(0x4000_8000_0000_0000_0001);
const INSTANCES: u128 = 20;

pub async fn metering(args: &MeteringArgs) -> Result<bool, Failure> {
    let (taken, events, reads) = if args.quick { (10_000, 100_000, 50) } else { (500_000, 10_000_000, 500) };
    let server = Server::reach(args.database_url.as_deref()).await?;
    let database = server.database("metering").await?;
    let mut report = Report::default();
    report.add(ingest(&mut server.nearby(&database).await?, taken).await?);
    report.add(roll_up(&database.pool, events).await?);
    report.add(read(&database.pool, events, reads).await?);
    // Who follows events does not follow the clearing up after a rollup.
    execute(&mut *database.pool.acquire().await?, "vacuum analyze".into()).await?;
    execute(&mut *database.pool.acquire().await?, "checkpoint".into()).await?;
    report.add(stream::measure(&database, if args.quick { 2 } else { 60 }).await?);
    show(&report.table());
    if !args.quick {
        let environment = environment(&server).await?;
        report.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("results/metering.json"), &environment)?;
    }
    server.drop(database).await?;
    Ok(report.all_met())
}

/// Batches by the platform's own statement and by COPY take turns, so that whatever slows the machine slows both.
async fn ingest(conn: &mut PgConnection, events: usize) -> Result<Vec<Figure>, Failure> {
    say(&format!("metering: taking {events} events…"));
    execute(conn, "create table copied (like usage_records including all)".into()).await?;
    let (mut taken, mut copied) = (Vec::new(), Vec::new());
    for batch in 0..events.div_ceil(BATCH) {
        let records: Vec<NewRecord> = (0..BATCH).map(|n| record(batch * BATCH + n)).collect();
        let began = Instant::now();
        usage_records::add(conn, &records).await?;
        taken.push(began.elapsed().as_secs_f64());
        let text: String = records.iter().map(as_copied).collect();
        let began = Instant::now();
        copy(conn, text).await?;
        copied.push(began.elapsed().as_secs_f64());
    }
    let (own, reference) = (median(&taken), median(&copied));
    let rate = |seconds: f64| BATCH as f64 / seconds;
    Ok(vec![
        Figure {
            name: "usage taken",
            value: rate(own),
            unit: "events/s",
            bar: Bar::None,
            beside: format!("batches of {BATCH} on one connection"),
        },
        Figure {
            name: "usage taken to COPY",
            value: 100.0 * reference / own,
            unit: "%",
            bar: Bar::AtLeast(30.0),
            beside: format!("COPY {:.0} events/s into the same indexes", rate(reference)),
        },
    ])
}

async fn copy(conn: &mut PgConnection, text: String) -> Result<(), Failure> {
    let statement =
        "copy copied (id, org_id, project_id, app_instance_id, app_slug, usage_source, usage_unit, quantity,
        occurred_at, window_start, window_end, correlation_id, metadata, source, event_id) from stdin";
    let mut sink = conn.copy_in_raw(statement).await?;
    sink.send(text.into_bytes()).await?;
    sink.finish().await?;
    Ok(())
}

/// The event of this number: one of many instances, a second after the one before.
fn record(number: usize) -> NewRecord {
    let at = beginning() + TimeDelta::seconds(i64::try_from(number).unwrap_or_default() / 20);
    NewRecord {
        id: Uuid::now_v7(),
        of: Attribution {
            org_id: PROJECT,
            project_id: PROJECT,
            app_instance_id: Some(Uuid::from_u128(number as u128 % INSTANCES + 1)),
            allocation_id: None,
            app_slug: Some("writer".into()),
            operating_mode: Some("tenant_dedicated".into()),
            control_plane_scope: Some("project".into()),
            runtime_backend: Some("launchable_oci".into()),
            control_plane_component: None,
        },
        usage_source: UsageSource::AppRuntime,
        usage_unit: "tokens".into(),
        quantity: 7,
        occurred_at: at,
        window: Window::of(at, 60),
        correlation_id: format!("c-{}", number / BATCH),
        reference_id: None,
        metadata: json!({}),
        source: "/apps/writer".into(),
        event_id: number.to_string(),
    }
}

fn beginning() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 1, 1, 0, 0, 0).single().unwrap_or(DateTime::UNIX_EPOCH)
}

fn as_copied(record: &NewRecord) -> String {
    let NewRecord { id, of, usage_source, usage_unit, quantity, occurred_at, window, .. } = record;
    let Attribution { org_id, project_id, .. } = of;
    let (instance, slug) =
        (of.app_instance_id.unwrap_or_default(), of.app_slug.as_deref().unwrap_or_default());
    format!(
        "{id}\t{org_id}\t{project_id}\t{instance}\t{slug}\t{usage_source}\t{usage_unit}\t{quantity}\t{}\t{}\t{}\t{}\t{{}}\t{}\t{}\n",
        occurred_at.to_rfc3339(),
        window.start.to_rfc3339(),
        window.end.to_rfc3339(),
        record.correlation_id,
        record.source,
        record.event_id
    )
}

/// Ten times the events must not need ten times the memory: a tenth is rolled up first, and what the process holds at most is
/// held against that.
async fn roll_up(pool: &PgPool, events: usize) -> Result<Vec<Figure>, Failure> {
    let few = rolled_up(pool, events / 10).await?;
    let all = rolled_up(pool, events).await?;
    Ok(vec![
        Figure {
            name: "rolled up",
            value: events as f64 / all.seconds,
            unit: "events/s",
            bar: Bar::None,
            beside: format!("{events} events in {} windows, {} entries", all.windows, all.entries),
        },
        Figure {
            name: "memory of a rollup",
            value: all.most - few.before,
            unit: "MiB",
            bar: Bar::AtMost(64.0),
            beside: format!("from {:.0} MiB to at most {:.0}", few.before, all.most),
        },
        Figure {
            name: "memory of ten times the events",
            value: all.most - few.most,
            unit: "MiB",
            bar: Bar::AtMost(16.0),
            beside: format!(
                "{} events at most {:.0} MiB, {events} events {:.0}",
                events / 10,
                few.most,
                all.most
            ),
        },
    ])
}

struct RolledUp {
    before: f64,
    /// What the process held at most.
    most: f64,
    windows: usize,
    entries: usize,
    seconds: f64,
}

async fn rolled_up(pool: &PgPool, events: usize) -> Result<RolledUp, Failure> {
    say(&format!("metering: rolling {events} events up…"));
    let mut conn = pool.acquire().await?;
    for table in ["usage_records", "prices", "ledger_entries"] {
        execute(&mut conn, format!("alter table {table} disable trigger all")).await?;
    }
    let rated = "usage_windows, usage_hours, rated_series, ledger_entries, ledger_heads, prices";
    execute(&mut conn, format!("truncate usage_records, open_windows, copied, {rated} cascade")).await?;
    execute(&mut conn, format!("set bench.events = {events}")).await?;
    execute(&mut conn, include_str!("metering/events.sql").into()).await?;
    execute(&mut conn, "vacuum analyze".into()).await?;
    let (before, began) = (resident_mib()?, Instant::now());
    let (mut most, mut windows, mut entries) = (before, 0, 0);
    loop {
        let mut tx = sqlx::Connection::begin(&mut *conn).await?;
        let posted = rating::post(&mut tx, 500, "c-bench").await?;
        tx.commit().await?;
        if posted.is_nothing() {
            break;
        }
        if posted.set_aside > 0 {
            return Err(Failure::Setup("the project could not be rated".into()));
        }
        most = most.max(resident_mib()?);
        windows += posted.windows;
        entries += posted.entries;
    }
    Ok(RolledUp { before, most, windows, entries, seconds: began.elapsed().as_secs_f64() })
}

/// Usage goes on while it is read: the last hour of it is not rated yet.
async fn go_on(conn: &mut PgConnection) -> Result<(), Failure> {
    execute(
        conn,
        "insert into usage_records (id, org_id, project_id, app_instance_id, app_slug, usage_source, usage_unit, quantity,
             occurred_at, window_start, window_end, correlation_id, source, event_id)
         select (lpad(to_hex((extract(epoch from w.start) * 1000)::bigint + n % 250), 12, '0') || '7'
                 || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid, p.id, p.id,
             ('00000000-0000-0000-0000-' || lpad(to_hex(n % 20 + 1), 12, '0'))::uuid, 'writer', 'app_runtime', 'tokens', 7,
             w.start, w.start, w.start + interval '1 minute', 'c-live', '/apps/live', n::text
         from generate_series(0, 60 * 250 - 1) n
         cross join (select '00000000-0000-4000-8000-000000000001'::uuid as id) p
         cross join lateral (select max(hour) + interval '1 hour' + (n / 250) * interval '1 minute' as start from usage_hours) w"
            .into(),
    )
    .await?;
    let opened =
        "insert into open_windows select distinct project_id, window_start, window_end from usage_records
        where source = '/apps/live'";
    execute(conn, opened.into()).await
}

async fn read(pool: &PgPool, events: usize, reads: usize) -> Result<Vec<Figure>, Failure> {
    let mut conn = pool.acquire().await?;
    go_on(&mut conn).await?;
    let all = Filter { project: PROJECT, instance: None, source: None, from: None, to: None };
    let one = Filter { instance: Some(Uuid::from_u128(7)), ..all };
    // There are 250 events a minute.
    let middle = beginning() + TimeDelta::minutes(i64::try_from(events / 500).unwrap_or_default());
    let since = Filter { from: Some(middle), ..one };
    let by = [GroupBy::AppInstance];
    let (mut days, mut hours, mut records, mut later) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..reads {
        let stretch = || Stretch { after: None, windows: 51 };
        let began = Instant::now();
        let sums = usage_sums::list(&mut conn, &all, Width::Day, &by, stretch()).await?;
        days.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        usage_sums::list(&mut conn, &one, Width::Hour, &[], stretch()).await?;
        hours.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        usage_records::list(&mut conn, &one, Slice { after: None, limit: 51 }).await?;
        records.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        let found = usage_records::list(&mut conn, &since, Slice { after: None, limit: 51 }).await?;
        later.push(began.elapsed().as_secs_f64() * 1e3);
        if sums.is_empty() || found.is_empty() {
            return Err(Failure::Setup("there is no usage to read".into()));
        }
    }
    let figure = |name: &'static str, times: &[f64], what: &str| Figure {
        name,
        value: percentile(times, 99.0),
        unit: "ms",
        bar: Bar::AtMost(50.0),
        beside: format!("{events} events of {INSTANCES} instances, {what}"),
    };
    Ok(vec![
        figure("usage by day p99", &days, "by day and instance"),
        figure("usage by hour p99", &hours, "of one instance by hour"),
        figure("usage records p99", &records, "a page of one instance's records"),
        figure("usage records since p99", &later, "a page of them from the middle on"),
    ])
}

/// What the process holds in memory right now.
fn resident_mib() -> Result<f64, Failure> {
    let text =
        fs::read_to_string("/proc/self/statm").map_err(Failure::io("read the size of this process"))?;
    let pages: f64 = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
    Ok(pages * 4096.0 / (1024.0 * 1024.0))
}
