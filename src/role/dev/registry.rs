//! A private image registry in the data directory: configured to ask this platform who may do what, started on the first
//! free port from 5000 on, and stopped with everything else. One that a killed process left behind is ended first: it
//! keeps nothing in memory that anybody would miss. Before it starts, and so while nobody can push, its garbage is collected:
//! layers of images that were deleted go then.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use clients::registry::{Authority, AuthorityFault};
use domain::Secret;
use reqwest::header::WWW_AUTHENTICATE;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::data::{DataDir, write_secret};
use crate::cli::client;
use crate::config;
use crate::failure::Failure;

const PROGRAM: &str = "docker-registry";
const FIRST_PORT: u16 = 5000;
const PORTS: u16 = 200;
const START_LIMIT: Duration = Duration::from_secs(30);
/// However much there is to look through, nobody waits longer for it; the next start goes on.
const COLLECT_LIMIT: Duration = Duration::from_secs(60);
/// Asked to end, it finishes what is being pushed; longer than this it is not waited for.
const STOP_LIMIT: Duration = Duration::from_secs(10);
const LOOK_LIMIT: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

const TOKEN_KEY: &str = "registry-token-key.pem";
const EVENTS_SECRET: &str = "registry-events-secret";
const HTTP_SECRET: &str = "registry-http-secret";

pub struct LocalRegistry {
    child: Child,
    folder: PathBuf,
    pub settings: config::Registry,
}

impl LocalRegistry {
    /// `server` is where the registry and its clients reach this platform. `None` where no registry is installed.
    pub async fn start(data: &DataDir, server: &str) -> Result<Option<LocalRegistry>, Failure> {
        let folder = data.path.join("registry");
        fs::create_dir_all(&folder).map_err(|error| failed("create", &folder, &error))?;
        end_left_over(&folder).await?;
        let (mut settings, mut collected) = (settings(data)?, false);
        for port in FIRST_PORT..FIRST_PORT + PORTS {
            if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
                continue;
            }
            settings.host = format!("127.0.0.1:{port}");
            settings.url = format!("http://{}", settings.host);
            configure(data, &folder, &settings, server)?;
            if !collected {
                collect_garbage(&folder).await;
                collected = true;
            }
            let mut child = match spawn(&folder) {
                Ok(child) => child,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(failed("run", Path::new(PROGRAM), &error)),
            };
            // Another program may take the free port before the registry does; then another port is tried.
            if answers(&mut child, &settings.url, server).await? {
                return Ok(Some(LocalRegistry { child, folder, settings }));
            }
        }
        Err(Failure::server(format!(
            "the image registry does not start. Its last words are in {}",
            log(&folder).display()
        )))
    }

    /// Returns when it ends by itself.
    pub async fn ended(&mut self) -> Failure {
        let _ = self.child.wait().await;
        Failure::server(format!("the image registry ended; see {}", log(&self.folder).display()))
    }

    pub async fn stop(mut self) {
        if let Some(pid) = self.child.id() {
            let _ = terminate(pid).await;
            if timeout(STOP_LIMIT, self.child.wait()).await.is_err() {
                let _ = self.child.kill().await;
            }
        }
        let _ = fs::remove_file(self.folder.join("pid"));
    }
}

fn settings(data: &DataDir) -> Result<config::Registry, Failure> {
    let word = || Ok::<_, AuthorityFault>(Secret::new(Uuid::new_v4().simple().to_string()));
    Ok(config::Registry {
        url: String::new(),
        host: String::new(),
        service: "gpuaas-registry".to_owned(),
        issuer: "gpuaas".to_owned(),
        token_key: data.secret(TOKEN_KEY, Authority::generate_key)?,
        events_secret: Some(data.secret(EVENTS_SECRET, word)?),
    })
}

/// Frees what no manifest names. Never with `-m`, which takes images that are known by digest alone. A registry that cannot
/// do it, or takes too long, starts all the same: nothing is lost but room.
async fn collect_garbage(folder: &Path) {
    if !folder.join("data").is_dir() {
        return;
    }
    let collecting = Command::new(PROGRAM)
        .arg("garbage-collect")
        .arg(folder.join("config.yml"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status();
    match timeout(COLLECT_LIMIT, collecting).await {
        Ok(Ok(status)) if status.success() => {}
        Ok(Ok(status)) => tracing::warn!(%status, "the image registry's garbage was not collected"),
        Ok(Err(error)) => tracing::debug!(%error, "no image registry to collect garbage from"),
        Err(_) => tracing::warn!("the image registry's garbage was not collected in time"),
    }
}

/// As the registry wants it. Collecting garbage under a running registry breaks images, so it is done before it runs.
fn configure(
    data: &DataDir,
    folder: &Path,
    settings: &config::Registry,
    server: &str,
) -> Result<(), Failure> {
    let certificate = settings.authority()?.certificate().map_err(Failure::server)?;
    write_secret(&folder.join("token-ca.pem"), &certificate)?;
    let word = || Ok::<_, AuthorityFault>(Secret::new(Uuid::new_v4().simple().to_string()));
    let http_secret = data.secret(HTTP_SECRET, word)?;
    let events = settings.events_secret.as_ref().map(|secret| secret.expose().as_str()).unwrap_or_default();
    let (folder_shown, host) = (folder.display(), &settings.host);
    let text = format!(
        r#"version: 0.1
log: {{level: info}}
storage:
  filesystem: {{rootdirectory: "{folder_shown}/data"}}
  delete: {{enabled: true}}
http: {{addr: "{host}", secret: "{http_secret}"}}
auth:
  token:
    realm: "{realm}"
    service: "{service}"
    issuer: "{issuer}"
    rootcertbundle: "{folder_shown}/token-ca.pem"
notifications:
  endpoints:
    - name: gpuaas
      url: "{server}/internal/v1/registry/events"
      headers: {{Authorization: ["Bearer {events}"]}}
      timeout: 1s
      threshold: 3
      backoff: 2s
      ignoredmediatypes: [application/octet-stream]
"#,
        realm = token_url(server),
        http_secret = http_secret.expose(),
        service = settings.service,
        issuer = settings.issuer,
    );
    Ok(write_secret(&folder.join("config.yml"), &text)?)
}

fn spawn(folder: &Path) -> io::Result<Child> {
    let said = OpenOptions::new().create(true).append(true).open(log(folder))?;
    let child = Command::new(PROGRAM)
        .arg("serve")
        .arg(folder.join("config.yml"))
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said)
        // Ctrl-C is for us to pass on, in our order.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    if let Some(pid) = child.id() {
        fs::write(folder.join("pid"), pid.to_string())?;
    }
    Ok(child)
}

/// Whether ours listens there; false when it ended first. Whoever took the port before it may be a registry too, that of another
/// `gpuaas dev`: only ours sends its clients to this platform for a token.
async fn answers(child: &mut Child, url: &str, server: &str) -> Result<bool, Failure> {
    let (http, token) = (client::http()?, format!("\"{}\"", token_url(server)));
    let deadline = Instant::now() + START_LIMIT;
    while Instant::now() < deadline {
        if child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return Ok(false);
        }
        let asked = http.get(format!("{url}/v2/")).timeout(LOOK_LIMIT).send().await;
        let challenge = asked.ok().and_then(|answer| answer.headers().get(WWW_AUTHENTICATE).cloned());
        if challenge.is_some_and(|challenge| challenge.to_str().is_ok_and(|words| words.contains(&token))) {
            return Ok(true);
        }
        sleep(LOOK_AGAIN).await;
    }
    let _ = child.kill().await;
    Ok(false)
}

fn token_url(server: &str) -> String {
    format!("{server}/registry/token")
}

/// A pid alone proves nothing after a reboot, so the process behind it must be a registry with this very configuration.
async fn end_left_over(folder: &Path) -> Result<(), Failure> {
    let Ok(text) = fs::read_to_string(folder.join("pid")) else { return Ok(()) };
    let Ok(pid) = text.trim().parse::<u32>() else { return Ok(()) };
    let ours = folder.join("config.yml");
    let lives = || {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).any(|word| word == ours.as_os_str().as_encoded_bytes())
    };
    let deadline = Instant::now() + STOP_LIMIT;
    while lives() {
        if Instant::now() > deadline {
            return Err(Failure::server(format!(
                "the image registry of an earlier start, process {pid}, does not end"
            )));
        }
        terminate(pid).await.map_err(|error| failed("end", Path::new(PROGRAM), &error))?;
        sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

async fn terminate(pid: u32) -> io::Result<()> {
    Command::new("kill").arg(pid.to_string()).stderr(Stdio::null()).status().await.map(|_| ())
}

fn log(folder: &Path) -> PathBuf {
    folder.join("registry.log")
}

fn failed(verb: &str, what: &Path, error: &dyn Display) -> Failure {
    Failure::server(format!("cannot {verb} {}: {error}", what.display()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    /// Says of itself what a registry says, to everybody.
    fn stand_in(server: &str) -> String {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let challenge = format!("Bearer realm=\"{}\",service=\"gpuaas-registry\"", token_url(server));
        let answer = move |mut stream: TcpStream| {
            let _ = stream.read(&mut [0; 4096]);
            let head = format!("HTTP/1.1 401 Unauthorized\r\nwww-authenticate: {challenge}\r\n");
            let _ = write!(stream, "{head}content-length: 0\r\nconnection: close\r\n\r\n");
        };
        std::thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(answer));
        url
    }

    /// It takes its time to find that the port is taken.
    fn ends_after_a_while() -> Child {
        Command::new("sleep").arg("0.3").kill_on_drop(true).spawn().unwrap()
    }

    #[tokio::test]
    async fn the_registry_of_another_platform_is_not_taken_for_ours() {
        let (ours, theirs) = ("http://127.0.0.1:1", "http://127.0.0.1:11");
        let url = stand_in(theirs);
        assert!(!answers(&mut ends_after_a_while(), &url, ours).await.unwrap());
        assert!(answers(&mut ends_after_a_while(), &url, theirs).await.unwrap());
    }
}
