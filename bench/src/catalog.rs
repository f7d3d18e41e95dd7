//! `bench catalog`: how long a page of a large catalog takes, raw and as a project sees it, beside a bare query that reads as
//! many rows by an index. The three take turns, so that whatever slows the machine slows all of them.

use std::path::Path;
use std::time::Instant;

use clap::Args;
use rand::Rng;
use sqlx::{PgConnection, PgPool};
use store::{Slice, apps, offers};
use uuid::Uuid;

use crate::failure::Failure;
use crate::measure::environment;
use crate::report::{Bar, Figure, Report, median, percentile, say, show};
use crate::server::{Server, execute};

#[derive(Debug, Args)]
pub struct CatalogArgs {
    /// Measure on this server, as its administrator, instead of on one of our own
    #[arg(long, env = "GPUAAS_BENCH_DATABASE_URL", value_name = "URL")]
    database_url: Option<String>,
    /// A small catalog, to see that everything works; nothing is recorded
    #[arg(long)]
    quick: bool,
}

const PROJECTS: u128 = 200;
/// A page of fifty, and the row that tells whether there is another.
const ROWS: i64 = 51;

pub async fn catalog(args: &CatalogArgs) -> Result<bool, Failure> {
    let (apps, reads) = if args.quick { (1_000, 200) } else { (10_000, 2_000) };
    let server = Server::reach(args.database_url.as_deref()).await?;
    let database = server.database("catalog").await?;
    fill(&database.pool, apps).await?;
    let times = read(&database.pool, apps, reads).await?;
    let mut report = Report::default();
    report.add(figures(&times, &format!("{reads} pages of 50 of {apps} apps with 20 versions each")));
    show(&report.table());
    if !args.quick {
        let environment = environment(&server).await?;
        report.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("results/catalog.json"), &environment)?;
    }
    server.drop(database).await?;
    Ok(report.all_met())
}

async fn fill(pool: &PgPool, apps: u128) -> Result<(), Failure> {
    say(&format!("catalog: writing {apps} apps…"));
    let mut conn = pool.acquire().await?;
    execute(&mut conn, format!("set bench.apps = {apps}")).await?;
    execute(&mut conn, include_str!("../queries/catalog.sql").into()).await?;
    execute(&mut conn, "vacuum analyze".into()).await?;
    execute(&mut conn, "checkpoint".into()).await
}

/// Milliseconds of every read, by what was read.
#[derive(Default)]
struct Times {
    bare: Vec<f64>,
    list: Vec<f64>,
    entitled: Vec<f64>,
}

async fn read(pool: &PgPool, apps: u128, reads: usize) -> Result<Times, Failure> {
    let mut conn = pool.acquire().await?;
    let mut times = Times::default();
    // The first reads meet cold caches and unprepared statements; they do not count.
    for read in 0..reads + reads / 10 {
        // Somewhere in the catalog, but not so near its end that the page is short.
        let after = Uuid::from_u128(0x7000_8000_0000_0000_0000 + rand::rng().random_range(0..apps / 2));
        let project = Uuid::from_u128(0x4000_8000_0000_0000_0000 + rand::rng().random_range(1..=PROJECTS));
        let slice = Slice { after: Some(after), limit: ROWS };
        let began = Instant::now();
        full(bare(&mut conn, after).await?)?;
        let bare = milliseconds(began);
        let began = Instant::now();
        full(apps::list(&mut conn, slice).await?.len())?;
        let list = milliseconds(began);
        let began = Instant::now();
        full(offers::page(&mut conn, project, slice).await?.len())?;
        let entitled = milliseconds(began);
        if read >= reads / 10 {
            times.bare.push(bare);
            times.list.push(list);
            times.entitled.push(entitled);
        }
    }
    Ok(times)
}

/// As many rows by the primary key, of the same table, and nothing else.
async fn bare(conn: &mut PgConnection, after: Uuid) -> Result<usize, Failure> {
    let rows = sqlx::query!(
        "select id, slug, card, newest_version, active_version from apps where id > $1 order by id limit $2",
        after,
        ROWS
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.len())
}

/// A page that is not full would be no page to measure.
fn full(rows: usize) -> Result<(), Failure> {
    if rows as i64 == ROWS { Ok(()) } else { Err(Failure::Setup(format!("a page has {rows} rows"))) }
}

fn figures(times: &Times, beside: &str) -> Vec<Figure> {
    let reference = median(&times.bare);
    let mut figures = Vec::new();
    for (p99, ratio, times) in [
        ("list p99", "list to bare query", &times.list),
        ("entitled list p99", "entitled list to bare query", &times.entitled),
    ] {
        let middle = median(times);
        figures.push(Figure {
            name: p99,
            value: percentile(times, 99.0),
            unit: "ms",
            bar: Bar::AtMost(50.0),
            beside: beside.to_owned(),
        });
        figures.push(Figure {
            name: ratio,
            value: middle / reference,
            unit: "times",
            bar: Bar::AtMost(3.0),
            beside: format!("medians {middle:.3} ms and {reference:.3} ms"),
        });
    }
    figures
}

fn milliseconds(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}
