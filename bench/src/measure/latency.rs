//! How long a run of ten steps takes on an idle engine, from its start to its end as the starter sees it, counted in
//! inserts of one client on the same server. The floor is about 13: start, ten steps, end.

use std::time::{Duration, Instant};

use sqlx::PgConnection;
use tokio::time::timeout;

use super::Bench;
use crate::failure::Failure;
use crate::load::{Site, start};
use crate::report::{Bar, Figure, percentile, say};
use crate::workload::{self, Env, TenSteps};

const PATIENCE: Duration = Duration::from_secs(10);

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let runs = bench.size.latency_runs;
    let database = bench.server.database("latency").await?;
    let site = Site::open(&database, Env::default());
    // Connections, prepared statements and caches are made by the first runs.
    let (site, _) = one_by_one(site, 20).await?;
    let before = bench.reference.one_insert_ms().await?;
    let (site, times) = one_by_one(site, runs).await?;
    let insert = f64::midpoint(before, bench.reference.one_insert_ms().await?);
    site.close().await;
    bench.server.drop(database).await?;
    let (p50, p99) = (percentile(&times, 50.0), percentile(&times, 99.0));
    say(&format!("latency: p50 {p50:.2} ms, p99 {p99:.2} ms, one insert {insert:.3} ms"));
    let figure = |name, value: f64, bar| Figure {
        name,
        value: value / insert,
        unit: "inserts",
        bar: Bar::AtMost(bar),
        beside: format!("{value:.2} ms, one insert {insert:.3} ms, {runs} runs"),
    };
    Ok(vec![figure("idle start to done p50", p50, 18.0), figure("idle start to done p99", p99, 60.0)])
}

/// In a task, as whoever answers a request is, and on one connection, as a client of the reference. In milliseconds.
async fn one_by_one(site: Site, runs: usize) -> Result<(Site, Vec<f64>), Failure> {
    let starter = tokio::spawn(async move {
        let mut conn = site.pool.acquire().await?;
        let mut times = Vec::new();
        for _ in 0..runs {
            times.push(one_run(&site, &mut conn).await?.as_secs_f64() * 1e3);
        }
        drop(conn);
        Ok((site, times))
    });
    starter.await.map_err(|panic| Failure::Setup(panic.to_string()))?
}

/// A rest of the run is only a hint to look; the counter says whether it ended. A look every ten milliseconds besides
/// keeps a missed hint from being more than that.
async fn one_run(site: &Site, conn: &mut PgConnection) -> Result<Duration, Failure> {
    let before = site.finished();
    let mut rests = site.engine.rests();
    let began = Instant::now();
    start(&site.engine, conn, &TenSteps { payload: workload::payload() }).await?;
    while site.finished() == before {
        let _ = timeout(Duration::from_millis(10), rests.recv()).await;
        if began.elapsed() > PATIENCE {
            return Err(Failure::Patience("a lone run finished".into()));
        }
    }
    Ok(began.elapsed())
}
