//! `bench artifacts`: a large blob through the platform as it is shipped, beside `sha256sum` of the same file; intents issued
//! per second, beside single-row inserts; and the registry's token endpoint, beside one bare signature.

mod blob;
mod tokens;

use std::path::Path;
use std::time::Duration;

use clap::Args;
use domain::ProjectRole;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::{Platform, Target, answered, free_address};
use crate::failure::Failure;
use crate::measure::environment;
use crate::pgbench::Reference;
use crate::report::{Bar, Figure, Report, median, percentile, say, show};
use crate::server::{Database, Server};

#[derive(Debug, Args)]
pub struct ArtifactsArgs {
    /// Measure on this server, as its administrator, instead of on one of our own
    #[arg(long, env = "GPUAAS_BENCH_DATABASE_URL", value_name = "URL")]
    database_url: Option<String>,
    /// A small blob and short rounds, to see that everything works; nothing is recorded
    #[arg(long)]
    quick: bool,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
struct Size {
    blob_bytes: u64,
    rounds: usize,
    round: Duration,
}

const FULL: Size = Size { blob_bytes: 2 << 30, rounds: 5, round: Duration::from_secs(5) };
const QUICK: Size = Size { blob_bytes: 32 << 20, rounds: 1, round: Duration::from_secs(1) };
const CONNECTIONS: usize = 16;

pub async fn artifacts(args: &ArtifactsArgs) -> Result<bool, Failure> {
    let size = if args.quick { QUICK } else { FULL };
    let server = Server::reach(args.database_url.as_deref()).await?;
    let database = server.database("artifacts").await?;
    let place = Place::open(&database).await?;
    let mut report = Report::default();
    report.add(blob::measure(&place, size).await?);
    report.add(intents(&place, &database, size).await?);
    report.add(tokens::measure(&place, size).await?);
    show(&report.table());
    if !args.quick {
        let environment = environment(&server).await?;
        report.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("results/artifacts.json"), &environment)?;
    }
    drop(place);
    server.drop(database).await?;
    Ok(report.all_met())
}

/// A platform with a store of its own, and an app that the caller's project owns.
struct Place {
    platform: Platform,
    project: Uuid,
}

impl Place {
    async fn open(database: &Database) -> Result<Place, Failure> {
        let platform = Platform::start(database, free_address()?, ProjectRole::Publisher).await?;
        let project: Uuid = sqlx::query_scalar!("select id from projects").fetch_one(&database.pool).await?;
        sqlx::query!(
            "insert into apps (id, slug, owner_org_id, owner_project_id, card)
             select $1, 'hello', org_id, id, '{}' from projects",
            Uuid::now_v7()
        )
        .execute(&database.pool)
        .await?;
        let place = Place { platform, project };
        let me = Target::get(place.platform.address, "/api/v1/me", &place.platform.bearer());
        let said = |failure| Failure::Setup(format!("{failure}: {}", place.platform.said()));
        answered(&me).await.map_err(said)?;
        Ok(place)
    }

    /// A request of the project's.
    fn post(&self, path: &str, body: &Value) -> Target {
        let path = format!("/api/v1/projects/{}{path}", self.project);
        Target::post(self.platform.address, &path, &self.platform.bearer(), &body.to_string())
    }

    async fn ask(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let answer = self.post(path, body).body().await?;
        serde_json::from_str(&answer).map_err(|error| Failure::Setup(error.to_string()))
    }
}

/// Each is a row, a credential and a wrapped secret in one transaction, behind the gate and with its audit entry.
async fn intents(place: &Place, database: &Database, size: Size) -> Result<Vec<Figure>, Failure> {
    let target =
        place.post("/app-artifacts/publish-intents", &json!({ "app_slug": "hello", "app_version": "1.0.0" }));
    let reference = Reference::new(database, size.round).await?;
    let (mut rates, mut inserts, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=size.rounds {
        inserts.push(reference.inserts_per_second().await?);
        let took = target.ask_for(size.round, CONNECTIONS).await?;
        rates.push(took.len() as f64 / size.round.as_secs_f64());
        times.extend(took);
        say(&format!("intents {round}/{}: {:.0}/s", size.rounds, rates[rates.len() - 1]));
    }
    let beside = format!("pgbench, one-row inserts, {CONNECTIONS} clients: {:.0}/s", median(&inserts));
    let figure = |name, value, unit| Figure { name, value, unit, bar: Bar::None, beside: beside.clone() };
    Ok(vec![
        figure("publish intents", median(&rates), "per s"),
        figure("publish intents p99", percentile(&times, 99.0), "ms"),
        figure("intents to inserts", median(&rates) / median(&inserts), "times"),
    ])
}
