//! Durable steps per second, against one-row inserts per second on the same server in the same run.
//!
//! Runs of ten steps, a thousand in flight, each started by its own transaction inside the timed window; every step and
//! every try is in the journal. Rounds alternate with the reference, and each is compared with the mean of the
//! two beside it. Afterwards every promise is checked over everything that ran.

use std::time::Duration;

use sqlx::{PgPool, QueryBuilder};

use super::{Bench, IN_FLIGHT, Size};
use crate::failure::Failure;
use crate::load::Site;
use crate::process::{Postgres, cpu_of, peak_resident};
use crate::report::{Bar, Figure, median, say};
use crate::workload::{Env, STEPS};

#[derive(Debug, Clone, Copy)]
struct Round {
    steps_per_second: f64,
    commits_per_run: f64,
    worker_ms_per_1000: f64,
    postgres_ms_per_1000: f64,
}

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let Size { rounds, runs_per_round, .. } = bench.size;
    let database = bench.server.database("throughput").await?;
    let site = Site::open(&database, Env::default());
    let postgres = Postgres::behind(&mut *database.pool.acquire().await?).await?;
    let warm_up = runs_per_round / 10;
    site.drive(warm_up, IN_FLIGHT).await?;

    let mut references = vec![bench.reference.inserts_per_second().await?];
    let (mut measured, mut ratios) = (Vec::new(), Vec::new());
    for number in 1..=rounds {
        let round = measure_round(&site, postgres, runs_per_round).await?;
        let before = references[references.len() - 1];
        let after = bench.reference.inserts_per_second().await?;
        let ratio = round.steps_per_second / f64::midpoint(before, after);
        say(&format!(
            "throughput {number}/{rounds}: {:.0} steps/s for {:.0} + {:.0} ms of CPU per 1000, reference {before:.0} and {after:.0} \
             inserts/s, {ratio:.2}×",
            round.steps_per_second, round.worker_ms_per_1000, round.postgres_ms_per_1000
        ));
        references.push(after);
        measured.push(round);
        ratios.push(ratio);
    }
    let memory = peak_resident(std::process::id())?;
    site.close().await;
    check_promises(&database.pool, warm_up + runs_per_round * rounds).await?;
    bench.server.drop(database).await?;
    Ok(figures(&measured, &ratios, &references, memory, runs_per_round))
}

async fn measure_round(site: &Site, postgres: Postgres, runs: u64) -> Result<Round, Failure> {
    let me = std::process::id();
    let (commits, worker, server) = (writing_transactions(&site.pool).await?, cpu_of(me)?, postgres.cpu()?);
    let took = site.drive(runs, IN_FLIGHT).await?;
    let (worker, server) = (cpu_of(me)? - worker, postgres.cpu()? - server);
    let commits = writing_transactions(&site.pool).await? - commits;
    let steps = (runs * STEPS) as f64;
    let per_1000 = |cpu: Duration| cpu.as_secs_f64() * 1e6 / steps;
    Ok(Round {
        steps_per_second: steps / took.as_secs_f64(),
        commits_per_run: commits as f64 / runs as f64,
        worker_ms_per_1000: per_1000(worker),
        postgres_ms_per_1000: per_1000(server),
    })
}

/// How many transactions have been given an id, which only those that write are.
async fn writing_transactions(pool: &PgPool) -> Result<i64, Failure> {
    let next =
        sqlx::query_scalar!(r#"select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as "next!""#);
    Ok(next.fetch_one(pool).await?)
}

/// P1–P10, and that what the runs were to do is done exactly once: every run, step, attempt and effect is there.
async fn check_promises(pool: &PgPool, runs: u64) -> Result<(), Failure> {
    let mut conn = pool.acquire().await?;
    let broken = engine::check_invariants(&mut conn).await?;
    if let Some(first) = broken.first() {
        return Err(Failure::Broken(format!("{} times, first {first:?}", broken.len())));
    }
    let mut count = QueryBuilder::new(
        "select (select count(*) from engine.run where state = 'succeeded'), (select count(*) from engine.step
         where state = 'succeeded'), (select count(*) from engine.try where outcome = 'succeeded'),
         (select count(*) from effect), (select count(*) from apalis.jobs)",
    );
    let counted: (i64, i64, i64, i64, i64) = count.build_query_as().fetch_one(&mut *conn).await?;
    let (runs, steps) = (runs.cast_signed(), (runs * STEPS).cast_signed());
    if counted == (runs, steps, steps, runs, 0) {
        return Ok(());
    }
    Err(Failure::Broken(format!(
        "runs, steps, attempts, effects and jobs left are {counted:?} after {runs} runs"
    )))
}

fn figures(rounds: &[Round], ratios: &[f64], references: &[f64], memory: u64, runs: u64) -> Vec<Figure> {
    let middle = |pick: fn(&Round) -> f64| median(&rounds.iter().map(pick).collect::<Vec<_>>());
    let reference = median(references);
    let told =
        |name, value, unit, beside: &str| Figure { name, value, unit, bar: Bar::None, beside: beside.into() };
    vec![
        Figure {
            name: "throughput",
            value: median(ratios),
            unit: "× inserts/s",
            bar: Bar::AtLeast(1.5),
            beside: format!("{} rounds of {runs} runs: {}", ratios.len(), listed(ratios)),
        },
        told(
            "steps",
            middle(|r| r.steps_per_second),
            "per second",
            &format!("reference {reference:.0} inserts/s"),
        ),
        told("commits", middle(|r| r.commits_per_run), "per run", "start, ten steps and end of each run"),
        told("worker CPU", middle(|r| r.worker_ms_per_1000), "ms/1000 steps", "starting the runs included"),
        told("Postgres CPU", middle(|r| r.postgres_ms_per_1000), "ms/1000 steps", ""),
        Figure {
            name: "memory under load",
            value: memory as f64 / 1e6,
            unit: "MB",
            bar: Bar::AtMost(150.0),
            beside: format!("the process at its largest, {IN_FLIGHT} runs in flight"),
        },
    ]
}

fn listed(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(" ")
}
