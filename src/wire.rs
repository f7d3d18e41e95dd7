//! Puts the parts together: the engine on its database, the workflows it drives, the API in front. One descent,
//! no decisions.

use std::sync::Arc;

use activities::Env;
use engine::{Engine, Kind, Workers};
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::Config;

pub fn engine(database: PgConnectOptions, config: &Config) -> Engine {
    let engine = Engine::new(database, config.engine.clone());
    // A process that only answers requests shows the plans of runs that others drive.
    engine.knows(kinds());
    engine
}

pub fn workers(engine: &Engine) -> Workers {
    Workers::start(engine, Arc::new(Env::default()), workflows::registry())
}

/// Answers requests until `closing` is cancelled and the last one is done.
pub async fn api(
    listener: TcpListener,
    engine: Engine,
    closing: CancellationToken,
) -> Result<(), api::ServeError> {
    let build = api::Build {
        name: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        git: option_env!("GPUAAS_GIT_COMMIT"),
        schema: store::migrate::newest(),
    };
    api::serve(listener, api::State::new(engine, build), closing.cancelled_owned()).await
}

/// The workflows this binary can drive.
pub fn kinds() -> Vec<Kind> {
    workflows::registry().kinds()
}
