//! What is under way, as the database has it: the same from every process. Each gauge is read in one pass and shown until
//! the next reading.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use engine::inspect::{LiveCount, counts, queue};
use engine::{Cause, Engine, RunState};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use sqlx::PgConnection;
use store::readings;
use workflows::billing::prove;

type Labels = Vec<(&'static str, String)>;

pub(super) struct Gauge {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    rows: Vec<(Labels, f64)>,
}

/// How many there are, by labels.
fn number(name: &'static str, help: &'static str, rows: Vec<(Labels, f64)>) -> Gauge {
    Gauge { name, help, unit: None, rows }
}

/// How many there are in all.
fn total(name: &'static str, help: &'static str, count: i64) -> Gauge {
    number(name, help, vec![(Vec::new(), count as f64)])
}

fn seconds(name: &'static str, help: &'static str, rows: Vec<(Labels, f64)>) -> Gauge {
    Gauge { unit: Some(Unit::Seconds), ..number(name, help, rows) }
}

fn age(name: &'static str, help: &'static str, age: f64) -> Gauge {
    seconds(name, help, vec![(Vec::new(), age)])
}

pub(super) async fn read(conn: &mut PgConnection, engine: &Engine) -> sqlx::Result<Vec<Gauge>> {
    let mut all = runs(&counts(conn).await?, engine);
    all.extend(waiting(conn).await?);
    all.extend(schedules(conn, engine).await?);
    all.extend(agents(conn).await?);
    all.extend(told(conn).await?);
    all.extend(billed(conn).await?);
    Ok(all)
}

/// Every workflow has its rows, also while none of its runs live: a gauge that is missing is no 0.
fn runs(counts: &[LiveCount], engine: &Engine) -> Vec<Gauge> {
    let sum = |of: &dyn Fn(&LiveCount) -> bool| -> f64 {
        counts.iter().filter(|count| of(count)).map(|count| count.runs).sum::<i64>() as f64
    };
    let known = engine.kinds();
    let alive = counts.iter().map(|count| count.kind.as_str());
    let kinds: BTreeSet<&str> = known.iter().map(|kind| kind.name).chain(alive).collect();
    let states: Vec<RunState> = RunState::ALL.into_iter().filter(|state| !state.is_terminal()).collect();
    let mut live = Vec::new();
    for kind in kinds {
        for state in &states {
            let labels = vec![("workflow", kind.to_owned()), ("state", state.to_string())];
            live.push((labels, sum(&|count| count.kind == kind && count.state == *state)));
        }
    }
    let by_cause = |stuck: bool| -> Vec<(Labels, f64)> {
        let row = |cause: Cause| {
            let labels = vec![("cause", cause.as_str().to_owned())];
            (labels, sum(&|count| count.cause == Some(cause) && (count.stuck || !stuck)))
        };
        Cause::ALL.into_iter().map(row).collect()
    };
    vec![
        number("workflow_live_runs", "Unfinished runs", live),
        number("engine_held_runs", "Unfinished runs that do not advance, by cause", by_cause(false)),
        number("engine_stuck_runs", "Runs that want a person's eye, by cause", by_cause(true)),
    ]
}

async fn waiting(conn: &mut PgConnection) -> sqlx::Result<Vec<Gauge>> {
    let queue = queue(conn).await?;
    Ok(vec![
        total("queue_admitted", "Drives that were admitted and nobody has taken", queue.admitted),
        age("queue_admitted_age", "How long the oldest admitted drive waits", queue.oldest_admitted_seconds),
        total("queue_due", "Runs whose time has come and that are not admitted", queue.due),
        age("queue_due_age", "How long the oldest of them waits", queue.oldest_due_seconds),
        total("engine_slots", "Slots of all living processes", queue.slots),
        total("engine_processes", "Processes that drive runs", queue.processes),
    ])
}

async fn schedules(conn: &mut PgConnection, engine: &Engine) -> sqlx::Result<Vec<Gauge>> {
    let now = store::server::now(conn).await?;
    let (mut succeeded, mut overdue, mut since) = (Vec::new(), Vec::new(), Vec::new());
    let mut not_read = 0;
    for schedule in engine.schedules(conn).await? {
        let is_proof = schedule.name == prove::NIGHTLY.name;
        let labels = vec![("schedule", schedule.name)];
        let late = if schedule.paused { 0.0 } else { (now - schedule.next_at).as_seconds_f64().max(0.0) };
        overdue.push((labels.clone(), late));
        if let Some(result) = schedule.result {
            if let Some(output) = result.output.as_ref().filter(|_| is_proof) {
                not_read = output["not_read"].as_i64().unwrap_or_default();
            }
            let good = result.state == RunState::Succeeded.as_str();
            succeeded.push((labels.clone(), f64::from(u8::from(good))));
            since.push((labels, (now - result.finished_at).as_seconds_f64().max(0.0)));
        }
    }
    Ok(vec![
        number("schedule_succeeded", "Whether the last run that ended succeeded", succeeded),
        seconds("schedule_result_age", "Since the last run of a schedule ended", since),
        seconds("schedule_overdue", "How long a tick is past its time", overdue),
        total("ledgers_not_read", "Ledgers that the last proof could not read to their end", not_read),
    ])
}

async fn agents(conn: &mut PgConnection) -> sqlx::Result<Vec<Gauge>> {
    let instances = readings::instances(conn).await?;
    let nodes = readings::nodes(conn).await?;
    let statuses = ["enrolling", "active", "drained", "unavailable"];
    let by_status = |status: &str| nodes.iter().filter(|node| node.status == status).count() as f64;
    let of = |name: &str| vec![("node", name.to_owned())];
    // A node that was given up for lost is counted by its status.
    let kept = nodes.iter().filter(|node| matches!(node.status.as_str(), "active" | "drained"));
    let heard = kept.filter_map(|node| Some((of(&node.name), node.silent_seconds?)));
    Ok(vec![
        number(
            "app_instances",
            "Instances that are not decommissioned",
            instances.into_iter().map(|one| (vec![("status", one.word)], one.number as f64)).collect(),
        ),
        number(
            "nodes",
            "Nodes, by status",
            statuses.map(|status| (vec![("status", status.to_owned())], by_status(status))).into(),
        ),
        seconds("agent_silent", "Since a node's agent was last heard of", heard.collect()),
        number(
            "agent_open_tasks",
            "Tasks that a node's agent has not finished",
            nodes.iter().map(|node| (of(&node.name), node.open_tasks as f64)).collect(),
        ),
        seconds(
            "agent_oldest_task",
            "Age of the oldest of them",
            nodes.iter().map(|node| (of(&node.name), node.oldest_task_seconds)).collect(),
        ),
    ])
}

async fn told(conn: &mut PgConnection) -> sqlx::Result<Vec<Gauge>> {
    let outbox = readings::outbox(conn).await?;
    let webhooks = readings::webhooks(conn).await?;
    let failing = readings::failing_webhooks(conn).await?;
    let of = |one: &readings::FailingWebhook| {
        vec![("webhook", one.id.to_string()), ("project", one.project_id.to_string())]
    };
    let relay = readings::relay(conn).await?;
    let row = |label: &'static str, word: &str, count: i64| (vec![(label, word.to_owned())], count as f64);
    Ok(vec![
        total("outbox_unnumbered", "Events that have no number yet", outbox.unnumbered),
        age("outbox_unnumbered_age", "How long the oldest of them has none", outbox.oldest_seconds),
        number(
            "webhooks",
            "Webhooks; failing ones are active too",
            vec![
                row("status", "active", webhooks.active),
                row("status", "failing", webhooks.failing),
                row("status", "disabled", webhooks.disabled),
            ],
        ),
        total("webhook_events_behind", "Events that active webhooks have not taken up", webhooks.behind),
        number(
            "webhook_deliveries",
            "Deliveries that are to be tried again, and those that were given up",
            vec![row("status", "waiting", webhooks.waiting), row("status", "dead", webhooks.dead)],
        ),
        age(
            "webhook_overdue",
            "How long the oldest due delivery waits past its time",
            webhooks.overdue_seconds,
        ),
        seconds(
            "webhook_failing",
            "Since when the receiver of a webhook takes nothing, of the hundred that fail the longest",
            failing.iter().map(|one| (of(one), one.seconds)).collect(),
        ),
        number(
            "webhook_failing_events_behind",
            "Events that such a webhook has not taken up",
            failing.iter().map(|one| (of(one), one.behind as f64)).collect(),
        ),
        total("relay_events_behind", "Events that were not passed on to NATS", relay.behind),
        age("relay_behind_age", "How long ago the oldest of them happened", relay.oldest_seconds),
    ])
}

async fn billed(conn: &mut PgConnection) -> sqlx::Result<Vec<Gauge>> {
    let rollup = readings::rollup(conn).await?;
    Ok(vec![
        total("rollup_windows_due", "Windows of usage that are over and not rated", rollup.due),
        age("rollup_lag", "How long ago the oldest of them ended", rollup.lag_seconds),
        total("rollup_projects_set_aside", "Projects whose usage cannot be rated", rollup.set_aside),
        total("ledger_entries", "Entries of all ledgers", rollup.ledger_entries),
        total("ledger_negative_balances", "Projects that owe something", rollup.negative_balances),
    ])
}

/// The last reading.
#[derive(Default)]
pub(super) struct Readings(Mutex<Option<(Instant, Vec<Gauge>)>>);

impl Readings {
    pub(super) fn replace(&self, gauges: Vec<Gauge>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), gauges));
    }
}

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((at, gauges)) = &*last else { return Ok(()) };
        for Gauge { name, help, unit, rows } in gauges {
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
            for (labels, value) in rows {
                match labels.is_empty() {
                    true => family.encode_gauge(value)?,
                    false => family.encode_family(labels)?.encode_gauge(value)?,
                }
            }
        }
        let help = "Since the database was last measured";
        encoder
            .encode_descriptor("readings_age", help, Some(&Unit::Seconds), MetricType::Gauge)?
            .encode_gauge(&at.elapsed().as_secs_f64())
    }
}

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Readings")
    }
}
