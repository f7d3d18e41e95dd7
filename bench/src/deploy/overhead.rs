//! One instance: from the call that creates it to the answer that it runs, with its image on the node. Beside it `docker run`
//! of the same image, and the same questions until it is healthy: bare, which shares a network with everything else, and on a
//! network of its own, as every instance has one. The three take turns, and none begins before the node has as many networks in
//! reserve as it keeps: making one would slow down whoever is measured meanwhile.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::sleep;
use uuid::Uuid;

use crate::api::{Target, binary, free_address};
use crate::failure::Failure;
use crate::report::{Bar, Figure, median, percentile, say};

const PATIENCE: Duration = Duration::from_secs(120);
/// As the node's own probe asks: at once, and then with pauses that double.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The port that hello listens on.
const PORT: u16 = 8080;
/// So many networks a node keeps in reserve, unless it is told otherwise. With all of them there it makes no more.
const RESERVE: usize = 2;

pub(super) async fn measure(docker_host: &str, image: &Path, rounds: usize) -> Result<Vec<Figure>, Failure> {
    let platform = Dev::start(docker_host, image).await?;
    let docker = Docker { host: docker_host.to_owned() };
    // The image comes to the node, and everybody gets used to everything.
    docker.until_stocked().await?;
    let (first, _) = platform.deploy().await?;
    let image = docker.image_of(first).await?;
    platform.decommission(first).await?;
    docker.run(&image).await?;
    docker.run_apart(&image).await?;
    let (mut ours, mut bare, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        docker.until_stocked().await?;
        let shared = docker.run(&image).await?;
        docker.until_stocked().await?;
        let own = docker.run_apart(&image).await?;
        docker.until_stocked().await?;
        let (id, took) = platform.deploy().await?;
        platform.decommission(id).await?;
        say(&format!(
            "deploys {round}/{rounds}: {took:.0} ms, docker run {shared:.0} ms, on a network of its own {own:.0} ms"
        ));
        ours.push(took);
        bare.push(shared);
        apart.push(own);
    }
    let over = |name, reference: &[f64], what: &str| {
        let more: Vec<f64> = ours.iter().zip(reference).map(|(ours, reference)| ours - reference).collect();
        let (ours, reference) = (median(&ours), median(reference));
        let beside =
            format!("create to running {ours:.0} ms, {what} {reference:.0} ms, medians of {rounds} in turns");
        Figure { name, value: median(&more), unit: "ms", bar: Bar::AtMost(150.0), beside }
    };
    Ok(vec![
        over("deploy over docker run p50", &bare, "`docker run` and health"),
        over(
            "deploy over isolated docker run p50",
            &apart,
            "`docker network create`, `docker run` there and health",
        ),
        Figure {
            name: "create to running p99",
            value: percentile(&ours, 99.0),
            unit: "ms",
            bar: Bar::None,
            beside: format!("{rounds} deploys"),
        },
    ])
}

/// `gpuaas dev` as it is shipped, with hello published. It is stopped when it is dropped.
struct Dev {
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
    project: String,
}

impl Dev {
    async fn start(docker_host: &str, image: &Path) -> Result<Dev, Failure> {
        let folder = std::env::temp_dir().join(format!("gpuaas-bench-dev-{}", Uuid::new_v4().simple()));
        fs::create_dir(&folder).map_err(Failure::io(format!("make {}", folder.display())))?;
        let log = fs::File::create(folder.join("log")).map_err(Failure::io("write the platform's log"))?;
        let ready = folder.join("ready.json");
        let child = Command::new(binary()?)
            .args(["dev", "--port", "0", "--docker-host", docker_host])
            .arg("--data-dir")
            .arg(folder.join("data"))
            .arg("--ready-file")
            .arg(&ready)
            .arg("--hello-image")
            .arg(image)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(Failure::io("start gpuaas dev"))?;
        let mut dev = Dev { child, folder, address: free_address()?, project: String::new() };
        let told = dev.until_ready(&ready).await?;
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        if text("driver") != "docker" {
            return Err(Failure::Setup(format!("no container engine answers at {docker_host}")));
        }
        let address = text("api_url");
        let address = address.strip_prefix("http://").and_then(|address| address.parse().ok());
        dev.address = address.ok_or_else(|| Failure::Setup(format!("no address in {told}")))?;
        dev.project = text("project_id");
        Ok(dev)
    }

    async fn until_ready(&mut self, file: &Path) -> Result<Value, Failure> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Ok(text) = fs::read_to_string(file)
                && let Ok(told) = serde_json::from_str(&text)
            {
                return Ok(told);
            }
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        let said = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(Failure::Patience(format!("gpuaas dev is ready: {said}")))
    }

    /// The instance, and after how many milliseconds whoever called and waited was told that it runs.
    async fn deploy(&self) -> Result<(Uuid, f64), Failure> {
        let body = json!({ "app_slug": "hello", "version": "1.0.0", "display_name": "bench" });
        let call = self.call("?wait=60s", &body).await?;
        let began = Instant::now();
        let made = parse(&call.body().await?)?;
        let took = began.elapsed().as_secs_f64() * 1e3;
        if made["status"] != "running" {
            return Err(Failure::Setup(format!("the instance does not run: {made}")));
        }
        let id = made["id"].as_str().and_then(|id| id.parse().ok());
        let id = id.ok_or_else(|| Failure::Setup(format!("no id in {made}")))?;
        Ok((id, took))
    }

    async fn decommission(&self, id: Uuid) -> Result<(), Failure> {
        let call = self.call(&format!("/{id}/decommission?wait=60s"), &json!({})).await?;
        let ended = parse(&call.body().await?)?;
        if ended["status"] == "decommissioned" { Ok(()) } else { Err(Failure::Setup(ended.to_string())) }
    }

    /// By somebody who has signed in.
    async fn call(&self, path: &str, body: &Value) -> Result<Target, Failure> {
        let path = format!("/api/v1/projects/{}/app-instances{path}", self.project);
        Ok(Target::post(self.address, &path, &self.bearer().await?, &body.to_string()))
    }

    /// Of the seeded operator.
    async fn bearer(&self) -> Result<String, Failure> {
        let form = "grant_type=password&client_id=gpuaas&username=operator&password=operator";
        let path = "/realms/gpuaas/protocol/openid-connect/token";
        let told = parse(&Target::form(self.address, path, form).body().await?)?;
        Ok(format!("Bearer {}", told["access_token"].as_str().unwrap_or_default()))
    }
}

impl Drop for Dev {
    /// It stops its own Postgres and registry, and then its folder goes.
    fn drop(&mut self) {
        if let Some(pid) = self.child.id() {
            let _ = std::process::Command::new("kill").args(["-INT", &pid.to_string()]).status();
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The engine, by Docker's own client.
struct Docker {
    host: String,
}

impl Docker {
    /// Milliseconds until the container is healthy; it is gone afterwards.
    async fn run(&self, image: &str) -> Result<f64, Failure> {
        self.run_on("bridge", image, Instant::now()).await
    }

    /// The same with the network made for it, which takes a part of the time.
    async fn run_apart(&self, image: &str) -> Result<f64, Failure> {
        let network = format!("bench-{}", Uuid::new_v4().simple());
        let began = Instant::now();
        self.say(&["network", "create", &network]).await?;
        let took = self.run_on(&network, image, began).await;
        self.say(&["network", "rm", &network]).await?;
        took
    }

    async fn run_on(&self, network: &str, image: &str, began: Instant) -> Result<f64, Failure> {
        let address = free_address()?;
        let published = format!("{address}:{PORT}");
        let id = self.say(&["run", "--detach", "--network", network, "--publish", &published, image]).await?;
        let healthy = until_healthy(address).await;
        let took = began.elapsed().as_secs_f64() * 1e3;
        self.say(&["rm", "--force", &id]).await?;
        healthy.map(|()| took)
    }

    /// Until the node's reserve is full. Nothing is deployed, so nothing that was made ahead is somebody's.
    async fn until_stocked(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        while self.say(&["network", "ls", "--quiet", "--filter", "label=gpuaas.spare"]).await?.lines().count()
            < RESERVE
        {
            if Instant::now() > deadline {
                return Err(Failure::Patience("the node has networks in reserve".into()));
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// What an instance's container runs, as this engine calls it.
    async fn image_of(&self, instance: Uuid) -> Result<String, Failure> {
        let label = format!("label=gpuaas.instance={instance}");
        self.say(&["ps", "--no-trunc", "--filter", &label, "--format", "{{.Image}}"]).await
    }

    async fn say(&self, words: &[&str]) -> Result<String, Failure> {
        let mut command = Command::new("docker");
        let said = command.args(["-H", &self.host]).args(words).output().await;
        let said = said.map_err(Failure::io("run docker"))?;
        if said.status.success() {
            return Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned());
        }
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        Err(Failure::Program { program: format!("docker {}", words.join(" ")), said })
    }
}

async fn until_healthy(address: SocketAddr) -> Result<(), Failure> {
    let target = Target::get(address, "/healthz", "none");
    let (deadline, mut pause) = (Instant::now() + PATIENCE, FIRST_PAUSE);
    while target.body().await.is_err() {
        if Instant::now() > deadline {
            return Err(Failure::Patience("the container is healthy".into()));
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Ok(())
}

fn parse(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::Setup(format!("{error}: {text}")))
}
