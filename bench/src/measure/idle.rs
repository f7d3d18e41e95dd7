//! What waiting costs: CPU time of the server and of all of Postgres, and the server's memory, while ten thousand runs
//! are parked in a wait with a deadline in an hour and nothing else happens.
//!
//! The server is a process of its own that did not park the runs, so its memory is that of a process at rest. It is
//! `gpuaas serve` if that is built, else a process with the engine's workers alone; the table says which.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{Bench, until};
use crate::failure::Failure;
use crate::load::{Site, start_many};
use crate::process::{Postgres, cpu_of, resident};
use crate::report::{Bar, Figure, say};
use crate::server::{Database, execute};
use crate::worker::Worker;
use crate::workload::{Env, Parked};

const PARKED: usize = 10_000;
/// Starting up is not idling: connections are made and the first sweeps done within this time.
const SETTLE: Duration = Duration::from_secs(5);

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let database = bench.server.database("idle").await?;
    park(&database).await?;
    let worker = Worker::start_server(&database)?;
    let mut conn = database.pool.acquire().await?;
    let postgres = Postgres::behind(&mut conn).await?;
    // What parking left to clean up is done now, not while idling is measured.
    execute(&mut conn, "vacuum analyze".into()).await?;
    execute(&mut conn, "checkpoint".into()).await?;
    drop(conn);
    sleep(SETTLE).await;

    let began = Instant::now();
    let (worker_before, postgres_before) = (cpu_of(worker.pid)?, postgres.cpu()?);
    sleep(bench.size.idle).await;
    let took = began.elapsed().as_secs_f64();
    let percent = |cpu: Duration| cpu.as_secs_f64() / took * 100.0;
    let worker_share = percent(cpu_of(worker.pid)? - worker_before);
    let postgres_share = percent(postgres.cpu()? - postgres_before);
    let memory = resident(worker.pid)? as f64 / 1e6;
    let name = worker.name;
    worker.kill().await?;
    bench.server.drop(database).await?;
    say(&format!("idle: {name} {worker_share:.2} %, Postgres {postgres_share:.2} %, {memory:.1} MB"));
    Ok(vec![
        Figure {
            name: "idle CPU",
            value: worker_share + postgres_share,
            unit: "% of a core",
            bar: Bar::AtMost(2.0),
            beside: format!(
                "{name} {worker_share:.2} + Postgres {postgres_share:.2} over {took:.0} s, {PARKED} runs parked"
            ),
        },
        Figure {
            name: "idle memory",
            value: memory,
            unit: "MB",
            bar: Bar::AtMost(60.0),
            beside: format!("{name}, {PARKED} runs parked"),
        },
    ])
}

async fn park(database: &Database) -> Result<(), Failure> {
    let site = Site::open(database, Env::default());
    start_many(&site.engine, &site.pool, &Parked {}, PARKED).await?;
    until("all runs are parked", async || {
        let parked = sqlx::query_scalar!(
            r#"select count(*) as "n!" from engine.run where state = 'waiting' and owner is null and wake_at is not null"#
        );
        Ok(parked.fetch_one(&database.pool).await? == PARKED as i64)
    })
    .await?;
    site.close().await;
    Ok(())
}
