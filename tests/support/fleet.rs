//! The platform as it is deployed, in processes that can be killed for real: a server, a worker, an agent and a container
//! engine. Its story speaks to a second server in the story's own process, so that it can always ask.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command};
use std::time::Duration;

use clients::signing::SigningKey;
use serde_json::{Value, json};
use uuid::Uuid;

use super::cluster::Folder;
use super::docker::Engine;
use super::platform::{Platform, id_of};
use super::process::{children_of, gpuaas};
use super::realm::EXAMPLE;
use super::registry::{ISSUER, SERVICE};
use crate::http::admin;

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    Server,
    Worker,
    Agent,
    Engine,
}

pub struct Fleet {
    pub platform: Platform,
    pub engine: Engine,
    pub node: Uuid,
    folder: Folder,
    address: SocketAddr,
    server: Process,
    worker: Process,
    agent: Process,
}

impl Fleet {
    /// With a node whose engine is a real one.
    pub async fn start() -> Fleet {
        let engine = Engine::start().await;
        let (platform, _) = Platform::without_workers().await;
        let folder = Folder::new();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let address = free.expect("a free port");
        let settings = settings(&platform, &folder, address);
        let server = Process::start(&folder, "server", &[&serving(address)[..], &settings].concat());
        until_it_listens(address).await;
        let only = ["serve", "--workers-only"].map(str::to_owned);
        let worker = Process::start(&folder, "worker", &[&only[..], &settings].concat());
        let made = platform.http.post(&admin("/nodes"), json!({ "name": "gpu-1" })).await.with(201);
        let token = made["enrolment_token"].as_str().expect("a token").to_owned();
        let enrols = ["--enroll".to_owned(), token, "--platform".to_owned(), format!("http://{address}")];
        let doing = agent_does(&folder, &engine);
        let mut agent = Process::start(&folder, "agent", &[&doing[..], &enrols].concat());
        // The token is good once; from the next start on it is enrolled.
        agent.arguments = doing;
        let node = id_of(&made);
        let there = "select status = 'active' and $2::text[] is not null from nodes where id = $1";
        platform.story.until_true("the node has enrolled", there, node, &[]).await;
        Fleet { platform, engine, node, folder, address, server, worker, agent }
    }

    /// A part of the node with so many cores, for the project.
    pub async fn allocates(&self, cores: u32) -> Uuid {
        let body = json!({
            "project_id": EXAMPLE, "node_id": self.node, "capacity_shape": "gpu_slice", "gpu_count": 0, "cpu_cores": cores,
            "memory_gib": 2,
        });
        id_of(&self.platform.http.post(&admin("/allocations"), body).await.with(201))
    }

    /// With SIGKILL.
    pub fn kill(&mut self, victim: Victim) {
        match victim {
            Victim::Server => self.server.kill(),
            Victim::Worker => self.worker.kill(),
            Victim::Agent => self.agent.kill(),
            Victim::Engine => self.engine.kill(),
        }
    }

    pub async fn start_again(&mut self, victim: Victim) {
        match victim {
            Victim::Server => {
                self.server.start_again(&self.folder);
                until_it_listens(self.address).await;
            }
            Victim::Worker => self.worker.start_again(&self.folder),
            Victim::Agent => self.agent.start_again(&self.folder),
            Victim::Engine => self.engine.start_again().await,
        }
    }

    /// The names of the instance's containers, running or not.
    pub fn containers(&self, instance: Uuid) -> Vec<String> {
        let label = format!("label=gpuaas.instance={instance}");
        let all = self.engine.docker(&["ps", "-a", "--filter", &label, "--format", "{{.Names}}"]);
        all.expect("the engine answers").lines().map(str::to_owned).collect()
    }

    /// Waits until one of them has said this.
    pub async fn until_said(&self, name: &str, words: &str) {
        for _ in 0..3000 {
            let text = fs::read_to_string(self.folder.0.join(format!("{name}.log"))).unwrap_or_default();
            if text.contains(words) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{name} did not say {words:?}\n{}", self.said());
    }

    /// What everybody said, for when a story fails.
    pub fn said(&self) -> String {
        let of = |name: &str| {
            let text = fs::read_to_string(self.folder.0.join(format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("--- {name}\n{}\n", lines[lines.len().saturating_sub(15)..].join("\n"))
        };
        ["server", "worker", "agent"].map(of).concat()
    }

    pub async fn end(self) {
        let Fleet { platform, engine, server, worker, agent, .. } = self;
        for process in [agent, worker, server] {
            process.stop();
        }
        platform.end().await;
        drop(engine);
    }
}

/// One process of the built program. It is killed with the story.
struct Process {
    child: Child,
    name: &'static str,
    arguments: Vec<String>,
}

impl Process {
    fn start(folder: &Folder, name: &'static str, arguments: &[String]) -> Process {
        Process { child: spawn(folder, name, arguments), name, arguments: arguments.to_vec() }
    }

    /// And whatever it has started, before it has time to end well.
    fn kill(&mut self) {
        let started = children_of(self.child.id());
        self.child.kill().and_then(|()| self.child.wait().map(drop)).expect("it is killed");
        for process in started {
            let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
        }
    }

    /// As a service manager does; it leaves nothing half done.
    fn stop(mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }

    fn start_again(&mut self, folder: &Folder) {
        self.child = spawn(folder, self.name, &self.arguments);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(folder: &Folder, name: &str, arguments: &[String]) -> Child {
    let log = folder.0.join(format!("{name}.log"));
    let log = File::options().create(true).append(true).open(log).expect("a log");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    gpuaas(&arguments)
        .env_remove("DOCKER_HOST")
        .stdout(log.try_clone().expect("a log"))
        .stderr(log)
        .spawn()
        .expect("gpuaas")
}

/// What server and worker must agree on with the story: its database, its keys and its registry.
fn settings(platform: &Platform, folder: &Folder, address: SocketAddr) -> Vec<String> {
    let write = |name: &str, text: &str| {
        let path = folder.0.join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let registry = platform.registry.as_ref().expect("a registry");
    let own = SigningKey::generate().and_then(|key| key.private_key_pem()).expect("a key");
    let database = &platform.story.database;
    let (user, host, port) =
        (database.options.get_username(), database.options.get_host(), database.options.get_port());
    let pairs = [
        ("database.url", format!("postgres://{user}@{host}:{port}/{}", database.name)),
        ("auth.public_url", format!("http://{address}")),
        ("auth.issuers", "https://nobody.example gpuaas".to_owned()),
        ("auth.signing_keys_file", write("signing", own.expose())),
        ("auth.sealing_keys_file", write("sealing", &platform.http.realm.sealing)),
        ("registry.url", format!("http://{}", registry.host)),
        ("registry.service", SERVICE.to_owned()),
        ("registry.issuer", ISSUER.to_owned()),
        ("registry.token_key_file", write("registry", registry.key())),
        ("engine.lease_ms", "1000".to_owned()),
        ("engine.poll_ms", "20".to_owned()),
    ];
    pairs.into_iter().flat_map(|(key, value)| ["--set".to_owned(), format!("{key}={value}")]).collect()
}

fn serving(address: SocketAddr) -> [String; 4] {
    ["serve", "--api-only", "--listen", &address.to_string()].map(str::to_owned)
}

fn agent_does(folder: &Folder, engine: &Engine) -> Vec<String> {
    let home = folder.0.join("agent").display().to_string();
    let host = engine.host();
    ["agent", "--data-dir", &home, "--docker-host", &host].map(str::to_owned).to_vec()
}

async fn until_it_listens(address: SocketAddr) {
    for _ in 0..1500 {
        if tokio::net::TcpStream::connect(address).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nobody listens on {address}");
}

/// The instance's row, whatever the servers do.
pub async fn status(platform: &Platform, instance: Uuid) -> String {
    let row: Value = platform.instance(instance).await;
    row["status"].as_str().expect("a status").to_owned()
}
