//! `gpuaas serve`: the API, the workers, or both. It never changes the schema: it refuses one it does not fit, and warns
//! where its role could. It does not answer requests where nobody could be told from anybody else.
//!
//! It stops in order: not ready, no new work, steps reach a checkpoint, open requests finish, then the connections close.
//! A second signal skips to the connections.

use std::net::SocketAddr;
use std::time::Duration;

use activities::{Env, NatsSettings};
use api::Ending;
use axum::Router;
use clap::Args;
use engine::{Engine, Workers};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};
use store::migrate::Fit;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tracing::{info, warn};
use workflows::listening::Listening;
use workflows::relay::Relay;
use workflows::sequencer::{Hints, Sequencer};
use workflows::webhook::Dispatcher;

use crate::config::Config;
use crate::failure::Failure;
use crate::role::migrate::describe;
use crate::stop::Stop;
use crate::wire::{self, Front};

const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// After a second signal, connections that are still in use are not waited for longer than this.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Answer requests and leave the workflows to other processes
    #[arg(long, conflicts_with = "workers_only")]
    api_only: bool,
    /// Drive workflows and answer no requests
    #[arg(long)]
    workers_only: bool,
    /// How the application role reaches Postgres
    #[arg(long, value_name = "URL")]
    pub database_url: Option<String>,
    /// Where the API listens
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
}

pub async fn run(config: &Config, args: &ServeArgs) -> Result<(), Failure> {
    let stop = Stop::on_signals().map_err(Failure::server)?;
    let database = config.database.required()?;
    if !args.workers_only {
        config.auth.check_for(config.server.listen)?;
    }
    let fit = check_schema(&database).await?;
    let face =
        if args.workers_only { probes(config).await? } else { Face::Api(Box::new(front(config).await?)) };
    let engine = wire::engine(database, config);
    let env = if args.api_only { None } else { Some(env(config, &engine)?) };
    // Beside a newer release what that declared holds: this one would take away what it does not know.
    if fit == Fit::Current {
        workflows::declare_schedules(&engine).await.map_err(Failure::server)?;
    }
    let serving = Serving::start(engine, face, env, config.nats.as_ref());
    let mut serving = serving.announcing_for(config.server.notice);
    info!(api = !args.workers_only, workers = !args.api_only, "serving");
    let outcome = tokio::select! {
        () = stop.asked.cancelled() => Ok(()),
        failure = serving.ended() => Err(failure),
    };
    serving.stop(&stop).await;
    outcome
}

fn env(config: &Config, engine: &Engine) -> Result<Env, Failure> {
    let registry = config.registry.as_ref().map(|registry| registry.connect()).transpose()?;
    let blobs = config.artifact_store.as_ref().map(|store| store.open()).transpose()?;
    wire::env(engine, config.auth.sealer.clone(), registry, blobs)
}

/// What a process shows to the network.
pub enum Face {
    Api(Box<Front>),
    /// How it is: whether it lives and is ready, its build, its figures.
    Probes(TcpListener, api::Keys),
    Nothing,
}

async fn probes(config: &Config) -> Result<Face, Failure> {
    let Some(address) = config.server.probes else { return Ok(Face::Nothing) };
    let listener = bind(address, "server.probes_listen").await?;
    let address = listener.local_addr().map_err(Failure::server)?;
    Ok(Face::Probes(listener, wire::keys(&config.auth, address)?))
}

async fn front(config: &Config) -> Result<Front, Failure> {
    let listener = bind(config.server.listen, "serve --listen").await?;
    let address = listener.local_addr().map_err(Failure::server)?;
    let (keys, server) = (wire::keys(&config.auth, address)?, config.server.clone());
    let depot = wire::depot(
        config.registry.as_ref(),
        config.vault.as_ref(),
        config.artifact_store.as_ref(),
        &config.auth,
    )?;
    let console = wire::console(&config.auth, &keys, config.auth.loopback_http)?;
    Ok(Front { listener, server, keys, depot, console, beside: Router::new() })
}

/// The running parts of one process, for `serve` and `dev` alike.
pub struct Serving {
    pub engine: Engine,
    ending: Ending,
    /// How long it says that it will end before it does.
    notice: Duration,
    api: Option<JoinHandle<Result<(), api::ServeError>>>,
    workers: Option<Workers>,
    sequencer: Sequencer,
    dispatcher: Dispatcher,
    relay: Option<Relay>,
    listening: Option<Listening>,
}

impl Serving {
    /// With an `Env` it drives workflows too.
    pub fn start(engine: Engine, face: Face, env: Option<Env>, nats: Option<&NatsSettings>) -> Serving {
        let ending = Ending::default();
        let workers = env.map(|env| wire::workers(&engine, env));
        let hints = Hints::default();
        let sequencer = Sequencer::start(&engine, &hints);
        let dispatcher = Dispatcher::start(&engine, &hints);
        let relay = nats.map(|nats| Relay::start(&engine, &hints, nats.clone()));
        let listening = matches!(face, Face::Api(_)).then(|| Listening::start(&engine));
        let (own, told) = (engine.clone(), ending.clone());
        let api = match face {
            Face::Api(front) => Some(tokio::spawn(wire::api(*front, own, hints, told))),
            Face::Probes(listener, keys) => {
                Some(tokio::spawn(wire::probes(listener, keys, own, hints, told)))
            }
            Face::Nothing => None,
        };
        let notice = Duration::ZERO;
        Serving { engine, ending, notice, api, workers, sequencer, dispatcher, relay, listening }
    }

    #[must_use]
    pub fn announcing_for(self, notice: Duration) -> Serving {
        Serving { notice, ..self }
    }

    /// Returns once this process also drives runs, if it is to.
    pub async fn ready(&mut self) {
        if let Some(workers) = self.workers.as_mut() {
            workers.ready().await;
        }
    }

    /// Returns when the API ends although nobody asked it to. Workers begin again by themselves.
    pub async fn ended(&mut self) -> Failure {
        let Some(api) = self.api.as_mut() else { return std::future::pending().await };
        let how = api.await;
        self.api = None;
        Failure::server(match how {
            Ok(Ok(())) => "the API stopped by itself".to_owned(),
            Ok(Err(error)) => format!("the API stopped: {error}"),
            Err(error) => format!("the API stopped: {error}"),
        })
    }

    /// Each part finishes what it holds. Until the last step has reached a checkpoint and whoever sends requests had time
    /// to notice, they are answered; the connections close last.
    pub async fn stop(self, stop: &Stop) {
        // Not ready from here on: long polls and streams end.
        self.ending.announced.cancel();
        let patience = self.engine.settings().drain;
        let finish = async {
            let finish_steps = async {
                if let Some(workers) = self.workers {
                    workers.stop().await;
                }
            };
            tokio::join!(finish_steps, tokio::time::sleep(self.notice));
            self.ending.begun.cancel();
            if let Some(api) = self.api
                && tokio::time::timeout(patience, api).await.is_err()
            {
                warn!("some requests were still open and are cut");
            }
        };
        tokio::select! {
            () = finish => {}
            () = stop.hurried.cancelled() => warn!("stopped without waiting for open work"),
        }
        self.ending.begun.cancel();
        drop(self.listening);
        let close = async {
            self.dispatcher.stop().await;
            if let Some(relay) = self.relay {
                relay.stop().await;
            }
            self.sequencer.stop().await;
            self.engine.close().await;
        };
        let out_of_patience = async {
            stop.hurried.cancelled().await;
            tokio::time::sleep(LAST_PATIENCE).await;
        };
        tokio::select! {
            () = close => {}
            () = out_of_patience => warn!("some connections were still in use and are cut"),
        }
    }
}

/// `setting` is where somebody would choose another address.
pub async fn bind(address: SocketAddr, setting: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => Failure::usage(format!(
            "{address} is taken by another program: stop it, or choose another port (`{setting}`)"
        )),
        _ => Failure::server(format!("cannot listen on {address}: {error}")),
    })
}

async fn check_schema(database: &PgConnectOptions) -> Result<Fit, Failure> {
    let whereabouts = describe(database);
    let mut conn = tokio::time::timeout(CONNECT_LIMIT, database.connect())
        .await
        .map_err(|_| Failure::server(format!("the database at {whereabouts} did not answer within 10 s")))?
        .map_err(|error| Failure::server(format!("cannot reach the database at {whereabouts}: {error}")))?;
    // Where a pooler stands between, only what is in one transaction meets one session.
    let mut tx = conn.begin().await.map_err(Failure::server)?;
    let fit = store::migrate::check(&mut tx)
        .await
        .map_err(|error| Failure::server(format!("will not serve on {whereabouts}: {error}")))?;
    let excess = store::roles::excess_rights(&mut tx).await.map_err(Failure::server)?;
    tx.rollback().await.map_err(Failure::server)?;
    if !excess.is_empty() {
        warn!(
            role = database.get_username(),
            "this role {}: whoever takes this process over could rewrite history; serve with `database.app_role`",
            excess.join(", ")
        );
    }
    if let Fit::Newer { release } = fit {
        warn!(
            schema = release,
            binary = store::migrate::RELEASE,
            "the schema is newer than this binary; upgrade soon"
        );
    }
    let _ = conn.close().await;
    Ok(fit)
}
