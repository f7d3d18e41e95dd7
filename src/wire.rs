//! Puts the parts together: the engine on its database, the workflows it drives, the keys tokens are judged by, the
//! API in front. One descent, no decisions.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use activities::{Env, TaskSigners};
use api::Ending;
use axum::Router;
use clients::Clock;
use clients::blobs::Blobs;
use clients::clock::SystemClock;
use clients::oidc::Verifier;
use clients::oidc::code_flow::CodeFlow;
use clients::registry::Registry;
use clients::seal::Sealer;
use clients::signing::{SigningKey, SigningKeys};
use clients::tokens::Minter;
use clients::webhook::WebhookSender;
use clients::wrapping::{Vault, Wrapper, Wrapping};
use engine::{Engine, Kind, Workers};
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpListener;
use workflows::sequencer::Hints;

use crate::config::{self, Auth, Config};
use crate::failure::Failure;

/// How long the receiver of a webhook may take to answer.
const RECEIVERS_HAVE: Duration = Duration::from_secs(15);

pub fn engine(database: PgConnectOptions, config: &Config) -> Engine {
    let engine = Engine::new(database, config.engine.clone());
    // A process that only answers requests shows the plans of runs that others drive.
    engine.knows(kinds());
    engine.also_promises(activities::promises::of_the_platform);
    engine
}

/// What this process's workers reach the world through; they leave to others what needs more.
pub fn env(
    engine: &Engine,
    sealer: Option<Sealer>,
    registry: Option<Registry>,
    blobs: Option<Blobs>,
) -> Result<Env, Failure> {
    let sender = WebhookSender::new(RECEIVERS_HAVE).map_err(Failure::server)?;
    let mut env = Env::new(engine.clone()).with_webhooks(sender);
    if let Some(sealer) = sealer {
        env = env.with_signers(TaskSigners::new(sealer));
    }
    if let Some(registry) = registry {
        env = env.with_registry(registry);
    }
    if let Some(blobs) = blobs {
        env = env.with_blobs(blobs);
    }
    Ok(env)
}

pub fn workers(engine: &Engine, env: Env) -> Workers {
    Workers::start(engine, Arc::new(env), workflows::registry())
}

/// By what tokens are judged and made. `address` is what the platform calls itself unless it is told.
pub fn keys(auth: &Auth, address: SocketAddr) -> Result<api::Keys, Failure> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let verifier =
        Verifier::new(auth.issuers.clone(), auth.loopback_http, clock.clone()).map_err(Failure::usage)?;
    let signing = match &auth.signing_keys {
        Some(keys) => keys.clone(),
        // Only where nobody could sign in anyway: what it signs is believed until this process ends.
        None => SigningKeys::one(SigningKey::generate().map_err(Failure::server)?),
    };
    let sealer = match &auth.sealer {
        Some(sealer) => sealer.clone(),
        None => Sealer::from_lines(Sealer::generate_line("unkept").expose()).map_err(Failure::server)?,
    };
    let own_url = auth.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
    let minter = Minter::new(&own_url, &auth.audience, signing, clock.clone());
    Ok(api::Keys { verifier: Arc::new(verifier), minter, clock, sealer })
}

/// Where artifacts are kept; `None` where no registry is configured.
pub fn depot(
    registry: Option<&config::Registry>,
    vault: Option<&config::Vault>,
    store: Option<&config::ArtifactStore>,
    auth: &Auth,
) -> Result<Option<api::Depot>, Failure> {
    let (Some(registry), Some(sealer)) = (registry, &auth.sealer) else { return Ok(None) };
    let wrapping = match vault {
        Some(vault) => Wrapping::Vault(Vault::new(&vault.url, vault.token.clone()).map_err(Failure::usage)?),
        None => Wrapping::Embedded(Wrapper::new(sealer.clone())),
    };
    let blobs = store.map(config::ArtifactStore::open).transpose()?;
    Ok(Some(api::Depot { registry: registry.connect()?, blobs, wrapping }))
}

/// The page for people, and where they sign in to it: at the first issuer, by `loopback_http` also one on this machine.
pub fn console(auth: &Auth, keys: &api::Keys, loopback_http: bool) -> Result<api::Console, Failure> {
    let public_url = auth.public_url.as_deref().unwrap_or_default();
    let sign_in = match auth.issuers.first() {
        Some(issuer) if !public_url.is_empty() => {
            let audience = issuer.audiences.first();
            let client_id = auth.console_client_id.as_ref().or(audience).map_or("", String::as_str);
            let back = format!("{public_url}/console/callback");
            let flow = CodeFlow::new(&issuer.url, client_id, back, keys.verifier.clone(), loopback_http);
            Some(Arc::new(flow.map_err(Failure::usage)?))
        }
        _ => None,
    };
    Ok(api::Console { files: crate::console::FILES, sign_in, https: public_url.starts_with("https://") })
}

/// What the API answers with, and where.
pub struct Front {
    pub listener: TcpListener,
    pub server: config::Server,
    pub keys: api::Keys,
    pub depot: Option<api::Depot>,
    pub console: api::Console,
    /// Routes of other protocols, beside ours.
    pub beside: Router,
}

/// Answers requests until its ending has begun and the last one is done.
pub async fn api(front: Front, engine: Engine, hints: Hints, ending: Ending) -> Result<(), api::ServeError> {
    let mut state = api::State::new(engine, build(), front.keys)
        .receiving_within(front.server.receive_within)
        .limiting_strangers(front.server.anonymous_per_minute)
        .behind_proxies(front.server.proxies)
        .hinting(hints)
        .with_console(front.console);
    if let Some(depot) = front.depot {
        state = state.with_depot(depot);
    }
    api::serve(front.listener, state, front.beside, ending).await
}

/// Answers how the process is, and nothing else.
pub async fn probes(
    listener: TcpListener,
    keys: api::Keys,
    engine: Engine,
    hints: Hints,
    ending: Ending,
) -> Result<(), api::ServeError> {
    api::serve_probes(listener, api::State::new(engine, build(), keys).hinting(hints), ending).await
}

fn build() -> api::Build {
    api::Build {
        name: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        git: option_env!("GPUAAS_GIT_COMMIT"),
        schema: store::migrate::newest(),
    }
}

/// The workflows this binary can drive.
pub fn kinds() -> Vec<Kind> {
    workflows::registry().kinds()
}
