//! How soon work goes on after a process was killed: a thousand runs, each inside a long step, lose their worker to
//! SIGKILL, with the lease as in production. Another worker, idle until then, takes them over. The figure is the time
//! from the kill until the *last* of them has a new checkpoint.

use std::time::Instant;

use engine::Engine;
use sqlx::PgPool;

use super::{Bench, until};
use crate::failure::Failure;
use crate::load::start_many;
use crate::report::{Bar, Figure, say};
use crate::worker::Worker;
use crate::workload::{self, Long};

const ORPHANS: usize = 1000;

pub async fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let database = bench.server.database("recovery").await?;
    let pool = &database.pool;
    let engine = Engine::new(database.options.clone(), workload::settings());
    let first = Worker::start(&database)?;
    until_workers(pool, 1).await?;
    start_many(&engine, pool, &Long {}, ORPHANS).await?;
    until("all runs are inside their step", async || Ok(in_step(pool, 1).await? == ORPHANS as i64)).await?;
    let heir = Worker::start(&database)?;
    until_workers(pool, 2).await?;

    first.kill().await?;
    let killed = Instant::now();
    until("the last orphan commits again", async || Ok(in_step(pool, 2).await? == ORPHANS as i64)).await?;
    let took = killed.elapsed().as_secs_f64();
    heir.kill().await?;
    engine.close().await;
    bench.server.drop(database).await?;
    let lease = workload::settings().lease.as_secs();
    say(&format!("recovery: the last of {ORPHANS} after {took:.1} s"));
    Ok(vec![Figure {
        name: "recovery after SIGKILL",
        value: took,
        unit: "s",
        bar: Bar::AtMost(20.0),
        beside: format!("until the last of {ORPHANS} runs commits again; the lease is {lease} s"),
    }])
}

/// Runs whose step is being tried for the `attempt`th time: that intent is a committed checkpoint.
async fn in_step(pool: &PgPool, attempt: i32) -> Result<i64, Failure> {
    let trying = sqlx::query_scalar!(
        r#"select count(*) as "n!" from engine.step where state = 'running' and attempt = $1"#,
        attempt
    );
    Ok(trying.fetch_one(pool).await?)
}

async fn until_workers(pool: &PgPool, count: i64) -> Result<(), Failure> {
    until("the workers are ready", async || {
        let living =
            sqlx::query_scalar!(r#"select count(*) as "n!" from engine.incarnation where died_at is null"#);
        Ok(living.fetch_one(pool).await? == count)
    })
    .await
}
