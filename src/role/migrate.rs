//! `gpuaas migrate`: brings the schema to this binary's version and grants the serving role its rights. It runs as
//! the owner role, waits for anyone else who migrates, and changes nothing when there is nothing to do.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection};
use tokio::time::sleep;

use crate::cli::output::{self, Format, say};
use crate::config::Config;
use crate::failure::Failure;

const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub async fn run(config: &Config, format: Format) -> Result<(), Failure> {
    let owner = match &config.database.migrate_url {
        Some(options) => options.clone(),
        None => config.database.required()?,
    };
    let applied = migrate(owner, &config.database.app_role).await?;
    let release = store::migrate::RELEASE;
    match format {
        Format::Table | Format::Csv => say(&match applied {
            0 => format!("the schema is current (release {release})"),
            count => format!("applied {count} migrations; the schema is of release {release}"),
        }),
        Format::Name => output::text(&format!("{release}\n"))?,
        Format::Json | Format::Yaml => {
            output::data(format, &serde_json::json!({ "applied": applied, "release": release }))?;
        }
    }
    Ok(())
}

/// Answers how many of our own migrations ran. It may be dropped at any moment: its session ends with it, and what is not
/// committed is undone.
pub async fn migrate(owner: PgConnectOptions, app_role: &str) -> Result<usize, Failure> {
    let whereabouts = describe(&owner);
    // One connection holds the lock and runs our migrations; the queue's own need a second. A pool would ask for the first
    // again and again before it says that nobody answers.
    let unreachable = |error| Failure::server(format!("cannot reach the database at {whereabouts}: {error}"));
    let mut conn = owner.connect().await.map_err(unreachable)?;
    let pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(owner);
    take_turn(&mut conn).await.map_err(Failure::server)?;
    engine::setup_queue(&pool).await.map_err(|error| {
        Failure::server(format!("cannot prepare the queue's tables at {whereabouts}: {error}"))
    })?;
    let applied = store::migrate::run(&mut conn, app_role).await.map_err(Failure::server)?;
    // The lock ends with the session, not with the return to a pool.
    conn.close().await.map_err(Failure::server)?;
    pool.close().await;
    Ok(applied)
}

/// Returns when nobody else migrates. Whoever looks on is told once what it waits for.
async fn take_turn(conn: &mut PgConnection) -> sqlx::Result<()> {
    if store::migrate::try_lock(conn).await? {
        return Ok(());
    }
    say("waiting for another migration");
    while !store::migrate::try_lock(conn).await? {
        sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// `role@host:port/database`, for messages; never the password.
pub fn describe(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or(options.get_username());
    format!("{}@{}:{}/{database}", options.get_username(), options.get_host(), options.get_port())
}
