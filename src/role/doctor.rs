//! `gpuaas doctor`: looks at everything a running platform depends on and says what is wrong and what to do. The
//! exit code tells: 0 all well, 2 the database cannot be asked, 6 something is wrong.

mod limits;
mod runs;
mod server;

use std::time::Duration;

use clap::Args;
use serde::Serialize;
use sqlx::{ConnectOptions, Connection, PgConnection};

use crate::cli::output::{self, Format};
use crate::config::Config;
use crate::failure::Failure;
use crate::role::migrate::describe;
use crate::wire;

#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// How the application role reaches Postgres
    #[arg(long, value_name = "URL")]
    pub database_url: Option<String>,
    /// Also list the unfinished runs that this binary could not drive
    #[arg(long)]
    before_upgrade: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Well,
    Warning,
    Wrong,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    detail: String,
}

impl Finding {
    fn well(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Well, detail: detail.into() }
    }

    fn warning(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Warning, detail: detail.into() }
    }

    fn wrong(check: &'static str, detail: impl Into<String>) -> Finding {
        Finding { check, verdict: Verdict::Wrong, detail: detail.into() }
    }
}

pub async fn run(config: &Config, args: &DoctorArgs, format: Format) -> Result<(), Failure> {
    let database = config.database.required()?;
    let whereabouts = describe(&database);
    let unreachable =
        |why: String| Failure::server(format!("cannot reach the database at {whereabouts}: {why}"));
    let mut conn = tokio::time::timeout(Duration::from_secs(10), database.connect())
        .await
        .map_err(|_| unreachable("no answer within 10 s".to_owned()))?
        .map_err(|error| unreachable(error.to_string()))?;
    // One transaction, so that a pooler keeps to one session and all checks see a moment that fits together.
    let mut tx = conn.begin().await.map_err(Failure::server)?;
    let mut findings = examine(&mut tx, args).await.map_err(Failure::server)?;
    findings.push(limits::in_words(&config.engine));
    tx.rollback().await.map_err(Failure::server)?;
    report(format, &findings)
}

async fn examine(conn: &mut PgConnection, args: &DoctorArgs) -> sqlx::Result<Vec<Finding>> {
    let mut findings = server::examine(conn).await?;
    let schema = server::schema(conn).await;
    // Without its schema there is nothing more to look at.
    let readable = schema.verdict != Verdict::Wrong;
    findings.push(schema);
    if readable {
        findings.push(server::rights(conn).await?);
        findings.push(runs::queue(conn).await?);
        findings.push(runs::workers(conn).await?);
        findings.push(runs::schedules(conn, &wire::kinds()).await?);
        findings.push(runs::promises(conn).await?);
    }
    if readable && args.before_upgrade {
        findings.push(runs::before_upgrade(conn, &wire::kinds()).await?);
    }
    Ok(findings)
}

fn report(format: Format, findings: &[Finding]) -> Result<(), Failure> {
    let word = |verdict| match verdict {
        Verdict::Well => "ok",
        Verdict::Warning => "warning",
        Verdict::Wrong => "WRONG",
    };
    let rows: Vec<Vec<String>> = findings
        .iter()
        .map(|finding| {
            vec![finding.check.to_owned(), word(finding.verdict).to_owned(), finding.detail.clone()]
        })
        .collect();
    output::print(format, &["check", "verdict", "detail"], &rows, &findings)?;
    match findings.iter().filter(|finding| finding.verdict == Verdict::Wrong).count() {
        0 => Ok(()),
        wrong => Err(Failure::failed(format!("{wrong} of {} checks found something wrong", findings.len()))),
    }
}
