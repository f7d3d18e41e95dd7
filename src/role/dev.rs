//! `gpuaas dev`: everything on one machine. A private Postgres in the data directory (or an existing server),
//! migrated as the owner, served as the application role; a private image registry beside it; the API, the workers and an
//! issuer of tokens for people with well-known passwords in this process. Ctrl-C stops all of it, and the next start
//! continues on the same data.

mod account;
mod admin;
mod cluster;
mod data;
mod demo;
mod error;
mod hello;
mod issuer;
mod keys;
mod make_cluster;
mod node;
mod postmaster;
mod provision;
mod ready;
mod reference_apps;
mod registry;
mod seed;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clients::clock::SystemClock;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use self::admin::Admin;
use self::cluster::Cluster;
use self::data::DataDir;
use self::error::ClusterError;
use self::hello::Hello;
use self::issuer::Issuer;
use self::node::LocalNode;
use self::provision::Logins;
use self::ready::{PROJECT_ID, Ready};
use self::registry::LocalRegistry;
use crate::cli::output;
use crate::config::{self, Config};
use crate::failure::Failure;
use crate::role::migrate::migrate;
use crate::role::serve::{Face, Serving, bind};
use crate::stop::Stop;
use crate::wire::{self, Front};

/// A new platform is told ready with `hello` on it, but not later than this.
const PUBLISHES_WITHIN: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct DevArgs {
    /// The port of the API on 127.0.0.1; 0 takes a free one [default: 8080]
    #[arg(long)]
    pub port: Option<u16>,
    /// Where the database and everything else is kept
    #[arg(long, value_name = "DIR", default_value = ".gpuaas")]
    data_dir: PathBuf,
    /// Write what exists as JSON to this file, once everything is ready
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Give the local node so many GPUs where the machine has none; instances are placed on them and given none
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    simulate_gpus: u32,
    /// The image of the app hello, as `./dev pack` makes it [default: apps/hello, two folders above this program]
    #[arg(long, value_name = "DIR")]
    hello_image: Option<PathBuf>,
    /// Where the container engine listens
    #[arg(long, value_name = "ADDRESS", env = "DOCKER_HOST")]
    docker_host: Option<String>,
    /// Use this Postgres server instead of a private one
    #[arg(long, value_name = "URL")]
    pub database_url: Option<String>,
}

pub async fn run(config: &Config, args: &DevArgs) -> Result<(), Failure> {
    let began = Instant::now();
    if !config.server.listen.ip().is_loopback() {
        let why = "its people have well-known passwords, so only this machine may reach it";
        return Err(Failure::usage(format!("gpuaas dev does not listen on {}: {why}", config.server.listen)));
    }
    let stop = Stop::on_signals().map_err(Failure::server)?;
    // A script that waits for the file must not find the one of an earlier start.
    if let Some(path) = &args.ready_file {
        ready::forget(path)?;
    }
    let data = DataDir::claim(&args.data_dir)?;
    let listener = bind(config.server.listen, "dev --port").await?;
    let start = Start { config, args, data: &data, began };
    let app_role = &config.database.app_role;
    if let Some(login) = config.database.url.clone() {
        let provided = stop.asked.run_until_cancelled(provision::on_server(login, app_role)).await;
        let Some(logins) = provided.transpose()? else { return Ok(()) };
        return start.serve(listener, logins, None, &stop).await;
    }
    let opened = stop.asked.run_until_cancelled(Cluster::open(&data)).await;
    let Some(mut cluster) = opened.transpose()? else { return Ok(()) };
    let provided = stop.asked.run_until_cancelled(async {
        cluster.start().await?;
        provision::in_cluster(&cluster, app_role).await
    });
    let outcome = match provided.await.transpose() {
        Ok(Some(logins)) => start.serve(listener, logins, Some(&mut cluster), &stop).await,
        Ok(None) => Ok(()),
        Err(failure) => Err(failure),
    };
    // Postgres stops last and always, whatever went wrong before.
    outcome.and(cluster.stop().await.map_err(Failure::from))
}

/// What stays the same during one start.
struct Start<'a> {
    config: &'a Config,
    args: &'a DevArgs,
    data: &'a DataDir,
    began: Instant,
}

impl Start<'_> {
    /// Migrates and serves beside a registry of its own, unless one is configured. The registry stops after the API; one
    /// that has not answered yet ends as its start is dropped, since nobody knows of it.
    async fn serve(
        &self,
        listener: TcpListener,
        logins: Logins,
        cluster: Option<&mut Cluster>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let address = listener.local_addr().map_err(Failure::server)?;
        let prepared = stop.asked.run_until_cancelled(async {
            migrate(logins.owner.clone(), &self.config.database.app_role).await?;
            match &self.config.registry {
                Some(_) => Ok(None),
                None => LocalRegistry::start(self.data, &format!("http://{address}")).await,
            }
        });
        let Some(mut registry) = prepared.await.transpose()? else { return Ok(()) };
        let outcome = self.serve_beside(registry.as_mut(), listener, logins, cluster, stop).await;
        if let Some(registry) = registry {
            registry.stop().await;
        }
        outcome
    }

    /// Serves and tells, until a signal or until a part ends by itself.
    async fn serve_beside(
        &self,
        registry: Option<&mut LocalRegistry>,
        listener: TcpListener,
        logins: Logins,
        mut cluster: Option<&mut Cluster>,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let settings = registry.as_ref().map(|local| local.settings.clone()).or(self.config.registry.clone());
        let front = self.front(listener, settings.as_ref())?;
        let address = front.listener.local_addr().map_err(Failure::server)?;
        let host = settings.map(|registry| registry.host);
        let mut ready = Ready::new(address, host, &logins.application, self.data, cluster.as_deref());
        let engine = wire::engine(logins.application, self.config);
        seed::plant(engine.pool()).await.map_err(Failure::server)?;
        let depot = front.depot.as_ref();
        let (images, blobs) =
            (depot.map(|depot| depot.registry.clone()), depot.and_then(|depot| depot.blobs.clone()));
        let env = wire::env(&engine, Some(front.keys.sealer.clone()), images, blobs)?;
        let nats = self.config.nats.as_ref();
        workflows::declare_schedules(&engine).await.map_err(Failure::server)?;
        let mut serving = Serving::start(engine, Face::Api(Box::new(front)), Some(env), nats);
        tokio::select! {
            () = serving.ready() => {}
            () = stop.asked.cancelled() => {}
        }
        let set_up = stop.asked.run_until_cancelled(self.set_up(&serving, &mut ready)).await;
        let (mut set_up, told) = match set_up.transpose() {
            Ok(set_up) => (set_up, self.tell(&ready)),
            Err(failure) => (None, Err(failure)),
        };
        let outcome = tokio::select! {
            () = stop.asked.cancelled() => Ok(()),
            failure = serving.ended() => Err(failure),
            error = database_ended(&mut cluster) => Err(Failure::from(error)),
            failure = registry_ended(registry) => Err(failure),
            failure = node_ended(set_up.as_mut().map(|(node, _)| node)) => Err(failure),
            Err(failure) = std::future::ready(told) => Err(failure),
        };
        // The node goes last: what it has done may still be told while the steps that wait for it come to rest.
        let node = set_up.map(|(node, hello)| {
            hello.abort();
            node
        });
        serving.stop(stop).await;
        if let Some(node) = node {
            node.stop().await;
        }
        outcome
    }

    /// What a new data directory begins with: demo runs, this machine as a node, the reference apps, and `hello` to deploy.
    /// Whoever publishes it goes on in the background should it take long.
    async fn set_up(
        &self,
        serving: &Serving,
        ready: &mut Ready,
    ) -> Result<(LocalNode, JoinHandle<String>), Failure> {
        demo::start(&serving.engine).await.map_err(Failure::server)?;
        let admin = Admin::sign_in(ready.api_url()).await?;
        reference_apps::register(&admin, PROJECT_ID).await?;
        let DevArgs { simulate_gpus, docker_host, hello_image, .. } = self.args;
        let node = LocalNode::start(self.data, &admin, *simulate_gpus, docker_host.as_deref()).await?;
        ready.with_node(node.driver, node.allocation_id);
        let image = hello_image.clone().unwrap_or_else(hello::usual_image);
        let hello = Hello { admin, image, scratch: self.data.path.join("publisher") };
        let mut publishing = tokio::spawn(hello.publish());
        ready.with_hello(match timeout(PUBLISHES_WITHIN, &mut publishing).await {
            Ok(told) => told.map_err(Failure::server)?,
            Err(_) => "hello, still being published; its version page tells how far it is".to_owned(),
        });
        Ok((node, publishing))
    }

    /// The API as anywhere, with the issuer beside it.
    fn front(&self, listener: TcpListener, registry: Option<&config::Registry>) -> Result<Front, Failure> {
        let address = listener.local_addr().map_err(Failure::server)?;
        let server = format!("http://{address}");
        let issuer = Issuer::open(self.data, &server, Arc::new(SystemClock))?;
        let auth = keys::complete(&self.config.auth, self.data, &issuer, &server)?;
        let (keys, server) = (wire::keys(&auth, address)?, self.config.server.clone());
        let own = config::ArtifactStore::folder(&self.data.path.join("artifact-store"));
        let store = self.config.artifact_store.as_ref().unwrap_or(&own);
        let depot = wire::depot(registry, self.config.vault.as_ref(), Some(store), &auth)?;
        let console = wire::console(&auth, &keys, true)?;
        Ok(Front { listener, server, keys, depot, console, beside: issuer.routes() })
    }

    fn tell(&self, ready: &Ready) -> Result<(), Failure> {
        if let Some(path) = &self.args.ready_file {
            ready.write(path)?;
        }
        output::text(&ready.banner(self.began.elapsed()))
    }
}

async fn database_ended(cluster: &mut Option<&mut Cluster>) -> ClusterError {
    match cluster {
        Some(cluster) => cluster.ended().await,
        None => std::future::pending().await,
    }
}

async fn registry_ended(registry: Option<&mut LocalRegistry>) -> Failure {
    match registry {
        Some(registry) => registry.ended().await,
        None => std::future::pending().await,
    }
}

async fn node_ended(node: Option<&mut LocalNode>) -> Failure {
    match node {
        Some(node) => node.ended().await,
        None => std::future::pending().await,
    }
}

impl From<ClusterError> for Failure {
    fn from(error: ClusterError) -> Failure {
        match error {
            ClusterError::Held { .. } => Failure::usage(error),
            _ => Failure::server(error),
        }
    }
}
