//! Who `gpuaas dev` talks to the database as: the owner role to migrate, the application role to serve, exactly as
//! in production.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};

use super::cluster::Cluster;
use crate::failure::Failure;
use crate::role::migrate;

const DATABASE: &str = "gpuaas";
const OWNER: &str = "gpuaas_owner";

/// The two ways into one database.
#[derive(Debug, Clone)]
pub struct Logins {
    pub owner: PgConnectOptions,
    pub application: PgConnectOptions,
}

/// In our own cluster both roles log in by themselves, with passwords only the data directory knows.
pub async fn in_cluster(cluster: &Cluster, app_role: &str) -> Result<Logins, Failure> {
    let passwords = &cluster.passwords;
    let mut conn = connect(&cluster.options("postgres", &passwords.superuser, "postgres")).await?;
    store::roles::ensure_login(&mut conn, OWNER, &passwords.owner).await.map_err(Failure::server)?;
    store::roles::ensure_login(&mut conn, app_role, &passwords.application).await.map_err(Failure::server)?;
    store::roles::ensure_database(&mut conn, DATABASE, OWNER).await.map_err(Failure::server)?;
    let _ = conn.close().await;
    Ok(Logins {
        owner: cluster.options(OWNER, &passwords.owner, DATABASE),
        application: cluster.options(app_role, &passwords.application, DATABASE),
    })
}

/// An existing server gives one login, which owns the schema; serving steps down into the application role.
pub async fn on_server(login: PgConnectOptions, app_role: &str) -> Result<Logins, Failure> {
    let mut conn = connect(&login).await?;
    store::roles::ensure_assumable(&mut conn, app_role).await.map_err(Failure::server)?;
    let _ = conn.close().await;
    let application = login.clone().options([("role", app_role)]);
    Ok(Logins { owner: login, application })
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, Failure> {
    // The statements that make roles hold their passwords, and would be logged at the level of statements.
    let silent = options.clone().disable_statement_logging();
    let reached = tokio::time::timeout(Duration::from_secs(10), silent.connect()).await;
    let whereabouts = migrate::describe(options);
    match reached {
        Ok(Ok(conn)) => Ok(conn),
        Ok(Err(error)) => {
            Err(Failure::server(format!("cannot reach the database at {whereabouts}: {error}")))
        }
        Err(_) => Err(Failure::server(format!("the database at {whereabouts} did not answer within 10 s"))),
    }
}
