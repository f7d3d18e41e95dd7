//! A real agent in a story, reaching the platform over a real socket, on threads of its own. It can be killed and started again
//! on the same folder, and the way between the two can be cut.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use agent::{Agent, Driver, Home, Newcomer, Now, Settings, enrol};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use domain::Secret;
use node_protocol::{Gpu, Inventory};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::http::{Http, admin};

/// The platform behind a socket, and a way to cut what comes in.
pub struct Door {
    pub url: String,
    cut: Arc<AtomicU8>,
    serving: JoinHandle<()>,
}

impl Door {
    pub async fn open(http: &Http) -> Door {
        let cut = Arc::new(AtomicU8::new(OPEN));
        let is_cut = Arc::clone(&cut);
        let router: Router = api::router(http.state.clone(), Router::new()).layer(middleware::from_fn(
            move |request: Request, next: Next| {
                let is_cut = Arc::clone(&is_cut);
                async move { pass(is_cut, request, next).await }
            },
        ));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, router.into_make_service()).await;
        });
        Door { url, cut, serving }
    }

    /// While it is cut, whatever is asked or answered is lost.
    pub fn cut(&self, cut: bool) {
        self.cut.store(if cut { SHUT } else { OPEN }, Ordering::SeqCst);
    }

    /// What is asked is heard and done, and nobody learns of it.
    pub fn lose_answers(&self) {
        self.cut.store(ONE_WAY, Ordering::SeqCst);
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

const OPEN: u8 = 0;
const SHUT: u8 = 1;
const ONE_WAY: u8 = 2;

async fn pass(cut: Arc<AtomicU8>, request: Request, next: Next) -> Response {
    let lost = || StatusCode::BAD_GATEWAY.into_response();
    if cut.load(Ordering::SeqCst) == SHUT {
        return lost();
    }
    let answer = next.run(request).await;
    if cut.load(Ordering::SeqCst) == OPEN { answer } else { lost() }
}

pub struct RunningAgent {
    pub id: Uuid,
    pub folder: PathBuf,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
    /// Whatever the agent has begun runs here, and ends with it.
    runtime: Option<Runtime>,
}

/// A one-time token for a new node, made by the administrator that `http` acts as.
pub async fn token(http: &Http, name: &str) -> Secret<String> {
    let made = http.post(&admin("/nodes"), json!({ "name": name })).await.with(201);
    Secret::new(made["enrolment_token"].as_str().expect("a token").to_owned())
}

impl RunningAgent {
    /// A new node, enrolled through the door by the administrator that `http` acts as.
    pub async fn enrol<D: Driver + Clone>(http: &Http, door: &Door, name: &str, driver: &D) -> RunningAgent {
        RunningAgent::join(&door.url, &token(http, name).await, driver, now_of(http)).await
    }

    /// A new node of the platform at this address, for which the token was made.
    pub async fn join<D: Driver + Clone>(
        url: &str,
        token: &Secret<String>,
        driver: &D,
        now: Now,
    ) -> RunningAgent {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = std::env::temp_dir().join(format!("gpuaas-agent-{}", Uuid::now_v7()));
        let home = Home::at(&folder).expect("a folder");
        let key = home.newcomer(token).expect("a key");
        let gpus = (0..8).map(|index| Gpu {
            index,
            sku: "H100-80GB".into(),
            accelerator: "nvidia".into(),
            memory_gib: 80,
            uuid: Some(format!("GPU-{index}")),
            driver_version: None,
            simulated: false,
        });
        let machine = Some(format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH));
        let inventory = Inventory { cpu_cores: 64, memory_gib: 512, gpus: gpus.collect(), machine };
        let newcomer = Newcomer {
            key: &key,
            address: "127.0.0.1",
            driver: driver.name(),
            agent_version: "test",
            inventory: &inventory,
        };
        let (identity, enrolled) = enrol(url, token, &newcomer).await.expect("an enrolment");
        home.enrolled(&identity, &key, &enrolled.keyring).expect("an identity");
        RunningAgent::on(folder, driver, now)
    }

    /// From what is in the folder: an identity, and the accounts of a machine of its own where a story wrote some.
    fn on<D: Driver + Clone>(folder: PathBuf, driver: &D, now: Now) -> RunningAgent {
        let home = Home::at(&folder).expect("a folder");
        let id = home.identity().expect("an identity").node_id;
        let settings = Settings {
            address: Some("127.0.0.1".to_owned()),
            poll: Duration::from_secs(5),
            longest_pause: Duration::from_millis(100),
            longest_beat: Duration::from_millis(200),
            people: folder.join("passwd"),
            keep_images: Duration::from_secs(600),
            // Whatever else the machine does: who serves at once in a story is seen to.
            serves_within: Duration::from_secs(10),
            ..Settings::new("test")
        };
        let agent = Agent::open(home, driver.clone(), settings, now).expect("an agent");
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads of its own");
        let task = runtime.spawn(async move { agent.run(stopped).await });
        RunningAgent { id, folder, stop, task: Some(task), runtime: Some(runtime) }
    }

    /// As if its process were killed: what it was doing is gone, what it wrote down is not.
    pub async fn kill(mut self) -> PathBuf {
        self.ends().await;
        std::mem::take(&mut self.folder)
    }

    /// Nothing of it goes on after this.
    async fn ends(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            let ended =
                tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(10)));
            ended.await.expect("it ends");
        }
    }

    /// The same node again, from what is on its disk.
    pub fn again<D: Driver + Clone>(http: &Http, folder: PathBuf, driver: &D) -> RunningAgent {
        RunningAgent::on(folder, driver, now_of(http))
    }

    pub async fn end(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            let _ = task.await;
        }
        self.ends().await;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for RunningAgent {
    /// A story that failed leaves nothing running.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The clock that the story moves.
pub fn now_of(http: &Http) -> Now {
    let clock = Arc::clone(&http.realm.clock);
    Arc::new(move || clients::Clock::now(&*clock))
}
