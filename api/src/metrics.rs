//! `/metrics` in the `OpenMetrics` text format: requests by route template, what this process's engine counts by workflow
//! and step, the events it numbered, the verdicts on usage, and readings of what is under way in the database.
//!
//! A scrape never fails for want of the database: what is counted in memory is worth having then more than ever. The age of
//! the readings is one of them.

mod counters;
mod readings;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use api_types::UsageVerdict;
use axum::extract::State as Shared;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use engine::Engine;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::timeout;
use workflows::sequencer::Hints;

use self::counters::Counters;
use self::readings::{Gauge, Readings};
use crate::error::ApiError;
use crate::state::State;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A reading costs a pass over what is under way; scrapes closer together than this share one.
const READINGS_STAY_GOOD: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(1);

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
struct VerdictLabels {
    verdict: &'static str,
}

pub(crate) struct Metrics {
    engine: Engine,
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    latency: Family<RouteLabels, Histogram>,
    usage: Family<VerdictLabels, Counter>,
    readings: Arc<Readings>,
    asked: Mutex<Option<Instant>>,
}

impl Metrics {
    pub(crate) fn new(engine: &Engine, hints: &Hints) -> Metrics {
        let requests = Family::default();
        let latency: Family<RouteLabels, Histogram> =
            Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
        let readings = Arc::new(Readings::default());
        let mut registry = Registry::with_prefix("gpuaas");
        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time to the answer's head",
            Unit::Seconds,
            latency.clone(),
        );
        let usage: Family<VerdictLabels, Counter> = Family::default();
        registry.register("usage_events", "Events of usage that were judged here", usage.clone());
        registry.register_collector(Box::new(Counters { engine: engine.clone(), hints: hints.clone() }));
        registry.register_collector(Box::new(Arc::clone(&readings)));
        let (engine, asked) = (engine.clone(), Mutex::new(None));
        let metrics = Metrics { engine, registry, requests, latency, usage, readings, asked };
        // A counter that is missing is no 0.
        for verdict in [UsageVerdict::Accepted, UsageVerdict::Duplicate, UsageVerdict::Rejected] {
            metrics.usage(verdict, 0);
        }
        metrics
    }

    /// So many events of usage had this verdict.
    pub(crate) fn usage(&self, verdict: UsageVerdict, events: u64) {
        let verdict = match verdict {
            UsageVerdict::Accepted => "accepted",
            UsageVerdict::Duplicate => "duplicate",
            UsageVerdict::Rejected => "rejected",
        };
        self.usage.get_or_create(&VerdictLabels { verdict }).inc_by(events);
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

    async fn page(&self) -> Result<Response, ApiError> {
        if self.reading_is_due() {
            match timeout(PATIENCE, self.read()).await {
                Ok(Ok(gauges)) => self.readings.replace(gauges),
                Ok(Err(error)) => tracing::warn!(%error, "the database was not measured"),
                Err(_) => tracing::warn!("the database was not measured in time"),
            }
        }
        let mut page = String::new();
        text::encode(&mut page, &self.registry).map_err(|error| ApiError::internal(&error))?;
        Ok(([(header::CONTENT_TYPE, OPENMETRICS)], page).into_response())
    }

    /// Whether this scrape should read; the others show what is known.
    fn reading_is_due(&self) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let due = asked.is_none_or(|at| at.elapsed() >= READINGS_STAY_GOOD);
        if due {
            *asked = Some(Instant::now());
        }
        due
    }

    async fn read(&self) -> sqlx::Result<Vec<Gauge>> {
        let mut tx = self.engine.pool().snapshot().await?;
        let gauges = readings::read(&mut tx, &self.engine).await?;
        tx.rollback().await?;
        Ok(gauges)
    }
}

pub(crate) async fn scrape(Shared(state): Shared<State>) -> Result<Response, ApiError> {
    state.metrics.page().await
}
