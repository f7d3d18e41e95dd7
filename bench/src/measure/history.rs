//! Whether a long past slows the present: with a million steps of history, how long lists, filters and timelines take as
//! the API reads them, how long a claim takes and how soon a started run begins, and how many steps per second there are,
//! against an empty database measured just before and after.
//!
//! Claims are timed where they are made. Their runs are started by a process without workers, so that each comes by the
//! queue, and one by one, so that none shares its claim.

use std::time::{Duration, Instant};

use engine::inspect::{self, RunFilter};
use engine::{Cause, Engine, RunState};
use rand::Rng;
use sqlx::PgPool;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{Bench, IN_FLIGHT};
use crate::failure::Failure;
use crate::load::{Site, start};
use crate::report::{Bar, Figure, median, percentile, say};
use crate::server::{Database, execute};
use crate::workload::{self, Begin, Env, STEPS};

const PROJECTS: u128 = 200;
const PAGE: i64 = 50;
const PATIENCE: Duration = Duration::from_secs(10);

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let full = bench.server.database("history").await?;
    fill(&full, bench.size.history_runs).await?;
    let steps = bench.size.history_runs * STEPS;
    let beside = format!("{} reads at {steps} steps of history", bench.size.reads);
    let mut figures = Vec::new();
    for (name, times) in read(&full.pool, bench.size.reads).await? {
        let value = percentile(&times, 99.0);
        say(&format!("history: {name} {value:.2} ms, median {:.2} ms", median(&times)));
        figures.push(Figure { name, value, unit: "ms", bar: Bar::AtMost(50.0), beside: beside.clone() });
    }
    let claims = time_to_claim(&full, bench.size.reads).await?;
    let value = percentile(&claims, 99.0);
    say(&format!("history: claim p99 {value:.2} ms, median {:.2} ms", median(&claims)));
    let beside = format!("{} claims from the queue at {steps} steps", claims.len());
    figures.push(Figure { name: "claim p99", value, unit: "ms", bar: Bar::AtMost(10.0), beside });
    let begins = time_to_begin(&full, bench.size.reads).await?;
    let value = percentile(&begins, 99.0);
    say(&format!("history: start to first step p99 {value:.2} ms, median {:.2} ms", median(&begins)));
    let beside = format!("from the start's commit where it was started, at {steps} steps");
    figures.push(Figure { name: "begin p99", value, unit: "ms", bar: Bar::AtMost(10.0), beside });
    figures.push(compare(bench, &full).await?);
    bench.server.drop(full).await?;
    Ok(figures)
}

async fn fill(database: &Database, runs: u64) -> Result<(), Failure> {
    say(&format!("history: writing {runs} runs…"));
    let mut conn = database.pool.acquire().await?;
    execute(&mut conn, format!("set bench.runs = {runs}")).await?;
    execute(&mut conn, include_str!("../../queries/history.sql").into()).await?;
    execute(&mut conn, "vacuum analyze".into()).await?;
    execute(&mut conn, "checkpoint".into()).await
}

/// Milliseconds of every read, by what was read.
async fn read(pool: &PgPool, reads: usize) -> Result<[(&'static str, Vec<f64>); 5], Failure> {
    let mut conn = pool.acquire().await?;
    let (mut lists, mut filters, mut timelines) = (Vec::new(), Vec::new(), Vec::new());
    let (mut causes, mut stuck) = (Vec::new(), Vec::new());
    for _ in 0..reads {
        let project = Some(any_project());
        let began = Instant::now();
        let page =
            inspect::runs(&mut conn, &RunFilter { project, limit: PAGE, ..RunFilter::default() }).await?;
        lists.push(milliseconds(began));

        let failed = vec![RunState::Failed, RunState::Compensated];
        let filter = RunFilter { project, states: failed, limit: PAGE, ..RunFilter::default() };
        let began = Instant::now();
        inspect::runs(&mut conn, &filter).await?;
        filters.push(milliseconds(began));

        let filter = RunFilter { cause: Some(Cause::WaitingSignal), limit: PAGE, ..RunFilter::default() };
        let began = Instant::now();
        inspect::runs(&mut conn, &filter).await?;
        causes.push(milliseconds(began));

        let filter = RunFilter { stuck: true, limit: PAGE, ..RunFilter::default() };
        let began = Instant::now();
        inspect::runs(&mut conn, &filter).await?;
        stuck.push(milliseconds(began));

        let Some(run) = page.get(rand::rng().random_range(0..page.len().max(1))) else {
            return Err(Failure::Setup("a project has no history".into()));
        };
        let began = Instant::now();
        inspect::run(&mut conn, run.id).await?;
        timelines.push(milliseconds(began));
    }
    Ok([
        ("list p99", lists),
        ("filter p99", filters),
        ("filter by cause p99", causes),
        ("stuck runs p99", stuck),
        ("timeline p99", timelines),
    ])
}

/// Milliseconds of claims by a process that did not start their runs.
async fn time_to_claim(database: &Database, runs: usize) -> Result<Vec<f64>, Failure> {
    let site = Site::open(database, Env::default());
    let elsewhere = Engine::new(database.options.clone(), workload::settings());
    for _ in 0..runs {
        let before = site.finished();
        let mut conn = site.pool.acquire().await?;
        start(&elsewhere, &mut conn, &Begin {}).await?;
        drop(conn);
        site.engine.wake();
        let began = Instant::now();
        while site.finished() == before && began.elapsed() < PATIENCE {
            sleep(Duration::from_millis(1)).await;
        }
    }
    let claims = site.engine.stats().recent_claims();
    elsewhere.close().await;
    site.close().await;
    Ok(claims.into_iter().map(|took| took.as_secs_f64() * 1e3).collect())
}

/// Milliseconds from the commit of a start to the beginning of its first step, on an otherwise idle engine.
async fn time_to_begin(database: &Database, runs: usize) -> Result<Vec<f64>, Failure> {
    let (begun, mut heard) = unbounded_channel();
    let site = Site::open(database, Env { begun: Some(begun) });
    for _ in 0..10 {
        begin_one(&site, &mut heard).await?;
    }
    let mut times = Vec::new();
    for _ in 0..runs {
        times.push(begin_one(&site, &mut heard).await?);
    }
    site.close().await;
    Ok(times)
}

async fn begin_one(site: &Site, heard: &mut UnboundedReceiver<Instant>) -> Result<f64, Failure> {
    let before = site.finished();
    let mut conn = site.pool.acquire().await?;
    start(&site.engine, &mut conn, &Begin {}).await?;
    drop(conn);
    let committed = Instant::now();
    let waited = timeout(PATIENCE, heard.recv()).await.ok().flatten();
    let begun = waited.ok_or_else(|| Failure::Patience("a lone run began".into()))?;
    while site.finished() == before && committed.elapsed() < PATIENCE {
        sleep(Duration::from_millis(1)).await;
    }
    Ok(begun.saturating_duration_since(committed).as_secs_f64() * 1e3)
}

/// Steps per second here as a share of those in an empty database, each measured twice in turn.
async fn compare(bench: &Bench, full: &Database) -> Result<Figure, Failure> {
    let (mut empty_rates, mut full_rates) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let empty = bench.server.database("empty").await?;
        empty_rates.push(steps_per_second(&empty, bench.size.runs_per_round).await?);
        bench.server.drop(empty).await?;
        full_rates.push(steps_per_second(full, bench.size.runs_per_round).await?);
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let (empty, full) = (mean(&empty_rates), mean(&full_rates));
    say(&format!("history: {full:.0} steps/s, {empty:.0} in an empty database"));
    Ok(Figure {
        name: "throughput with history",
        value: full / empty * 100.0,
        unit: "% of empty",
        bar: Bar::AtLeast(90.0),
        beside: format!("{full:.0} steps/s against {empty:.0} in an empty database"),
    })
}

async fn steps_per_second(database: &Database, runs: u64) -> Result<f64, Failure> {
    let site = Site::open(database, Env::default());
    site.drive(runs / 10, IN_FLIGHT).await?;
    let took = site.drive(runs, IN_FLIGHT).await?;
    site.close().await;
    Ok((runs * STEPS) as f64 / took.as_secs_f64())
}

/// One of the projects that `history.sql` makes.
fn any_project() -> Uuid {
    Uuid::from_u128(0x4000_8000_0000_0000_0000 + rand::rng().random_range(0..PROJECTS))
}

fn milliseconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_are_those_of_the_history() {
        let text = any_project().to_string();
        assert!(text.starts_with("00000000-0000-4000-8000-0000000000"), "{text}");
    }
}
