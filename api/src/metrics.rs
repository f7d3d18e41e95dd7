//! `/metrics` in the `OpenMetrics` text format: requests by route template, the engine's counters, live runs by state
//! and the causes of those that do not advance.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State as Shared;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use engine::inspect::{LiveCount, counts};
use engine::{Engine, RunState};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::timeout;

use crate::error::ApiError;
use crate::state::State;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counting live runs costs a pass over them; scrapes closer together than this share one count.
const COUNTS_STAY_GOOD: Duration = Duration::from_secs(5);
const COUNTS_PATIENCE: Duration = Duration::from_secs(1);

/// 1 ms to 60 s: what a person feels, and the longest wait.
const LATENCY_BUCKETS: [f64; 13] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: String,
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabel {
    cause: &'static str,
}

pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    latency: Family<RouteLabels, Histogram>,
    live: Family<StateLabel, Gauge>,
    held: Family<CauseLabel, Gauge>,
    counted: Mutex<Option<Instant>>,
}

impl Metrics {
    pub(crate) fn new(engine: &Engine) -> Metrics {
        let requests = Family::default();
        let latency: Family<RouteLabels, Histogram> =
            Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
        let (live, held) = (Family::default(), Family::default());
        let mut registry = Registry::with_prefix("gpuaas");
        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time to the answer's head",
            Unit::Seconds,
            latency.clone(),
        );
        registry.register("engine_live_runs", "Unfinished runs by state", live.clone());
        registry.register("engine_held_runs", "Unfinished runs that do not advance, by cause", held.clone());
        registry.register_collector(Box::new(EngineCounters(engine.clone())));
        Metrics { registry, requests, latency, live, held, counted: Mutex::new(None) }
    }

    /// Paths that match no route share one label: callers must not be able to invent time series.
    pub(crate) fn request(&self, method: &Method, route: Option<&str>, status: StatusCode, took: Duration) {
        let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD]
            .contains(method);
        let method = if known { method.as_str() } else { "OTHER" }.to_owned();
        let route = route.unwrap_or("unmatched").to_owned();
        self.latency
            .get_or_create(&RouteLabels { method: method.clone(), route: route.clone() })
            .observe(took.as_secs_f64());
        self.requests.get_or_create(&RequestLabels { method, route, status: status.as_u16() }).inc();
    }

    /// Whether this scrape should count; the others keep what is known.
    fn count_is_due(&self) -> bool {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let due = counted.is_none_or(|at| at.elapsed() >= COUNTS_STAY_GOOD);
        if due {
            *counted = Some(Instant::now());
        }
        due
    }

    fn counted(&self, counts: &[LiveCount]) {
        for state in RunState::ALL.into_iter().filter(|state| !state.is_terminal()) {
            let runs = counts.iter().filter(|count| count.state == state).map(|count| count.runs).sum();
            self.live.get_or_create(&StateLabel { state: state.as_str() }).set(runs);
        }
        for cause in engine::Cause::ALL {
            let runs = counts.iter().filter(|count| count.cause == Some(cause)).map(|count| count.runs).sum();
            self.held.get_or_create(&CauseLabel { cause: cause.as_str() }).set(runs);
        }
    }
}

/// A scrape never fails for want of the database: the counters in memory are worth having then more than ever.
pub(crate) async fn scrape(Shared(state): Shared<State>) -> Result<Response, ApiError> {
    if state.metrics.count_is_due() {
        match timeout(COUNTS_PATIENCE, count(&state)).await {
            Ok(Ok(counts)) => state.metrics.counted(&counts),
            Ok(Err(error)) => tracing::warn!(%error, "live runs were not counted"),
            Err(_) => tracing::warn!("live runs were not counted in time"),
        }
    }
    let mut page = String::new();
    text::encode(&mut page, &state.metrics.registry).map_err(|error| ApiError::internal(&error))?;
    Ok(([(header::CONTENT_TYPE, OPENMETRICS)], page).into_response())
}

async fn count(state: &State) -> sqlx::Result<Vec<LiveCount>> {
    let mut tx = state.read().await?;
    let counted = counts(&mut tx).await?;
    tx.rollback().await?;
    Ok(counted)
}

/// The engine counts in plain atomics; they are read at the moment of the scrape.
struct EngineCounters(Engine);

impl Collector for EngineCounters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stats = self.0.stats();
        for (name, help, counter) in [
            ("engine_commits", "Transactions of the committer", &stats.commits),
            ("engine_checkpoints", "Checkpoints written by the committer", &stats.checkpoints),
            (
                "engine_contentions",
                "Committer batches tried again after a deadlock or conflict",
                &stats.contentions,
            ),
            ("engine_splits", "Committer batches split to isolate a failing checkpoint", &stats.splits),
            ("engine_drives", "Drives begun", &stats.drives),
            ("engine_fenced", "Drives stopped because another owner had taken the run", &stats.fenced),
            ("engine_runs_finished", "Runs that reached a terminal state here", &stats.runs_finished),
            ("engine_steps_finished", "Steps finished here", &stats.steps_finished),
            ("engine_steps_failed", "Tries of steps that failed here", &stats.steps_failed),
            ("engine_runs_reaped", "Runs taken back from dead processes", &stats.runs_reaped),
            ("engine_processes_reaped", "Processes found dead", &stats.processes_reaped),
            ("engine_fetches", "Looks into the queue", &stats.fetches),
            ("engine_jobs_fetched", "Jobs taken from the queue", &stats.jobs_fetched),
            ("engine_schedules_fired", "Ticks of schedules that started a run", &stats.schedules_fired),
            (
                "engine_promises_broken",
                "Broken promises found by the checker; any is an alarm",
                &stats.promises_broken,
            ),
        ] {
            let metric = ConstCounter::new(counter.load(Relaxed));
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)?;
        }
        let pressed = stats.pressed_for().map_or(0.0, |long| long.as_secs_f64());
        let in_flight = ConstGauge::new(stats.drives_in_flight.load(Relaxed));
        let help = "Drives running now";
        in_flight.encode(encoder.encode_descriptor(
            "engine_drives_in_flight",
            help,
            None,
            in_flight.metric_type(),
        )?)?;
        let pressure = ConstGauge::new(pressed);
        let help = "How long the oldest write has waited for the database";
        let unit = Some(&Unit::Seconds);
        pressure.encode(encoder.encode_descriptor(
            "engine_database_pressure",
            help,
            unit,
            pressure.metric_type(),
        )?)
    }
}

impl fmt::Debug for EngineCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EngineCounters")
    }
}
