//! An authenticated read of a caller the platform knows, `GET /api/v1/me`, against a bare route with the same body. Rounds
//! alternate, and each is compared with the mean of the two beside it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use domain::ProjectRole;
use sqlx::{PgPool, QueryBuilder};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use super::ask::Target;
use super::platform::Platform;
use super::{Size, free_address};
use crate::failure::Failure;
use crate::report::{Bar, Figure, median, percentile, say};
use crate::server::Database;

pub const PATH: &str = "/api/v1/me";
const PATIENCE: Duration = Duration::from_secs(30);

/// Requests per second, and the time within which 99 of 100 were answered.
#[derive(Debug, Clone, Copy)]
struct Round {
    per_second: f64,
    p99: f64,
}

pub async fn measure(database: &Database, size: Size) -> Result<Vec<Figure>, Failure> {
    let platform = Platform::start(database, free_address()?, ProjectRole::Operator).await?;
    let read = Target::get(platform.address, PATH, &platform.bearer());
    let body =
        answered(&read).await.map_err(|failure| Failure::Setup(format!("{failure}: {}", platform.said())))?;
    let bare = Target::get(free_address()?, PATH, &platform.bearer());
    let _reference = start_bare(&bare, &body)?;
    answered(&bare).await?;
    // Buffers, branch predictors and the processor's clock get used to it.
    round(&read, size).await?;

    let mut bares = vec![round(&bare, size).await?];
    let (mut reads, mut ratios) = (Vec::new(), Vec::new());
    let before = transactions(&database.pool).await?;
    for number in 1..=size.rounds {
        let measured = round(&read, size).await?;
        let next = round(&bare, size).await?;
        let beside = f64::midpoint(bares[bares.len() - 1].per_second, next.per_second);
        let percent = measured.per_second / beside * 100.0;
        say(&format!(
            "reads {number}/{}: {:.0}/s, bare {beside:.0}/s, {percent:.0} %",
            size.rounds, measured.per_second
        ));
        bares.push(next);
        reads.push(measured);
        ratios.push(percent);
    }
    let transactions = transactions(&database.pool).await? - before;
    Ok(figures(&reads, &bares, &ratios, transactions, size))
}

async fn round(target: &Target, size: Size) -> Result<Round, Failure> {
    let began = Instant::now();
    let took = target.ask_for(size.round, size.connections).await?;
    let per_second = took.len() as f64 / began.elapsed().as_secs_f64();
    Ok(Round { per_second, p99: percentile(&took, 99.0) })
}

fn start_bare(target: &Target, body: &str) -> Result<Child, Failure> {
    let program = std::env::current_exe().map_err(Failure::io("find this program"))?;
    Command::new(program)
        .args(["bare", "--listen", &target.address.to_string(), "--body", body])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(Failure::io("start the bare route"))
}

/// The first answer of a server that has just been started.
pub async fn answered(target: &Target) -> Result<String, Failure> {
    let began = Instant::now();
    loop {
        match target.body().await {
            Ok(body) => return Ok(body),
            Err(failure) if began.elapsed() > PATIENCE => return Err(failure),
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Transactions of everybody in this database so far. The server's statistics lag by a second at most.
async fn transactions(pool: &PgPool) -> Result<i64, Failure> {
    sleep(Duration::from_millis(1500)).await;
    let mut so_far = QueryBuilder::new(
        "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()",
    );
    Ok(so_far.build_query_scalar().fetch_one(pool).await?)
}

fn figures(reads: &[Round], bares: &[Round], ratios: &[f64], transactions: i64, size: Size) -> Vec<Figure> {
    let middle =
        |rounds: &[Round], pick: fn(&Round) -> f64| median(&rounds.iter().map(pick).collect::<Vec<_>>());
    let listed: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.0}")).collect();
    let answered: f64 = reads.iter().map(|round| round.per_second * size.round.as_secs_f64()).sum();
    let connections = size.connections;
    vec![
        Figure {
            name: "read throughput",
            value: median(ratios),
            unit: "% of bare",
            bar: Bar::AtLeast(50.0),
            beside: format!("{} rounds of {:?}: {}", ratios.len(), size.round, listed.join(" ")),
        },
        Figure {
            name: "reads",
            value: middle(reads, |round| round.per_second),
            unit: "per second",
            bar: Bar::None,
            beside: format!("bare {:.0}, {connections} connections", middle(bares, |round| round.per_second)),
        },
        Figure {
            name: "read p99",
            value: middle(reads, |round| round.p99),
            unit: "ms",
            bar: Bar::None,
            beside: format!(
                "bare {:.2} ms, {connections} connections that never rest",
                middle(bares, |round| round.p99)
            ),
        },
        Figure {
            name: "transactions of cached reads",
            value: transactions as f64 / answered * 1000.0,
            unit: "per 1000 reads",
            bar: Bar::AtMost(5.0),
            beside: "looking whether authority changed, every half second".into(),
        },
    ]
}
