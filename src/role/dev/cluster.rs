//! A private Postgres cluster in the data directory: made once, started, adopted when an earlier process left it
//! running, and stopped cleanly. Checksums and fsync are on; only password logins on loopback and the private
//! socket are accepted.

use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions, Connection};
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use super::ClusterError;
use super::account::Account;
use super::data::{DataDir, Passwords};
use super::make_cluster;
use super::postmaster::Postmaster;
use super::tools::Tools;

/// Crash recovery of a large database takes a while; a server that is still silent after this long is broken.
const START_LIMIT: Duration = Duration::from_secs(300);
const LOOK_AGAIN: Duration = Duration::from_millis(30);
/// How often an adopted server is looked after.
const STILL_THERE: Duration = Duration::from_secs(1);
/// The longest path a unix socket may have on Linux.
const SOCKET_PATH_LIMIT: usize = 107;

pub struct Cluster {
    tools: Tools,
    account: Account,
    data: PathBuf,
    pub log: PathBuf,
    pub port: u16,
    pub passwords: Passwords,
    passwords_path: PathBuf,
    pub adopted: bool,
    /// The server, when it is our child; an adopted one is not.
    child: Option<Child>,
}

impl Cluster {
    /// The cluster in `folder`, made now if there is none; its server is not started yet.
    pub async fn open(folder: &DataDir) -> Result<Cluster, ClusterError> {
        let account = Account::choose().await?;
        if let Some(closed) = account.closed_folder(&folder.path).await {
            return Err(ClusterError::Closed { closed, data: folder.path.clone() });
        }
        let data = folder.path.join("postgres");
        make_cluster::tidy(&data);
        let made_by = major_of(&data)?;
        let tools = Tools::find(made_by).await?;
        let passwords = match (folder.passwords()?, made_by) {
            (Some(passwords), _) => passwords,
            (None, None) => folder.make_passwords()?,
            (None, Some(_)) => {
                return Err(ClusterError::PasswordsLost { path: folder.passwords_path(), data });
            }
        };
        if made_by.is_none() {
            make_cluster::make(&tools, account, folder, &data, &passwords).await?;
        }
        let (log, passwords_path) = (folder.path.join("postgres.log"), folder.passwords_path());
        let (adopted, child) = (false, None);
        Ok(Cluster { tools, account, data, log, port: 0, passwords, passwords_path, adopted, child })
    }

    /// Returns when the server answers: a new one, or one that an earlier process left running.
    pub async fn start(&mut self) -> Result<(), ClusterError> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            // A server that an earlier process left behind may be ready, still recovering, or on its way out.
            match Postmaster::running(&self.data)? {
                Some(postmaster) => {
                    (self.port, self.adopted) = (postmaster.port, true);
                    if self.answers().await? {
                        return Ok(());
                    }
                }
                None => {
                    self.adopted = false;
                    return self.launch(deadline).await;
                }
            }
            if Instant::now() > deadline {
                return Err(ClusterError::Silent { log: self.log.clone() });
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// How `role` with `password` reaches `database` here.
    pub fn options(&self, role: &str, password: &str, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.port)
            .username(role)
            .password(password)
            .database(database)
            .ssl_mode(PgSslMode::Disable)
            .application_name("gpuaas")
    }

    /// Returns when the server ends by itself. An adopted one is nobody's child here, so it is looked after.
    pub async fn ended(&mut self) -> ClusterError {
        match &mut self.child {
            Some(child) => {
                let status = child.wait().await.ok();
                self.ended_badly(status)
            }
            None => {
                while !matches!(Postmaster::running(&self.data), Ok(None)) {
                    sleep(STILL_THERE).await;
                }
                self.ended_badly(None)
            }
        }
    }

    /// Stops the server cleanly: sessions are ended, everything is written, nothing to recover at the next start.
    /// It may be called however far `start` has come.
    pub async fn stop(mut self) -> Result<(), ClusterError> {
        loop {
            let could_be_told = Postmaster::running(&self.data)?.is_some();
            let answer = self.control(&["stop", "--mode=fast", "--wait", "--timeout=60"]).await?;
            let ours_lives = match &mut self.child {
                Some(child) => child.try_wait().is_ok_and(|ended| ended.is_none()),
                None => false,
            };
            // Once told, our child ends by itself; a pid file is what can be told, and a new server has none yet.
            match (answer.status.success(), ours_lives, Postmaster::running(&self.data)?.is_some()) {
                (true, ..) | (false, false, false) => break,
                (false, _, true) if could_be_told => {
                    return Err(ClusterError::program("pg_ctl stop", &answer));
                }
                // It was not there yet to be told, or only came while it was asked for.
                (false, ..) => sleep(LOOK_AGAIN).await,
            }
        }
        if let Some(child) = &mut self.child {
            let _ = child.wait().await;
        }
        Ok(())
    }

    /// Another program may take the free port before the server does; then another port is tried.
    async fn launch(&mut self, deadline: Instant) -> Result<(), ClusterError> {
        for _ in 0..3 {
            self.port = free_port()?;
            self.child = Some(self.spawn()?);
            match self.until_ready(deadline).await {
                Err(ClusterError::Ended { .. }) if port_is_taken(self.port) => continue,
                outcome => return outcome,
            }
        }
        Err(ClusterError::Silent { log: self.log.clone() })
    }

    fn spawn(&self) -> Result<Child, ClusterError> {
        let log = OpenOptions::new().create(true).append(true).open(&self.log);
        let log = log.map_err(|error| ClusterError::io("open", &self.log, error))?;
        let log_too = log.try_clone().map_err(|error| ClusterError::io("open", &self.log, error))?;
        let mut server = self.tools.command("postgres");
        server.arg("-D").arg(&self.data).arg("-p").arg(self.port.to_string());
        server.args(["-h", "127.0.0.1", "-k"]).arg(self.socket_folder());
        server.args(["-c", "max_connections=200", "-c", "fsync=on", "-c", "full_page_writes=on"]);
        server.stdin(Stdio::null()).stdout(log).stderr(log_too);
        self.account.apply(&mut server);
        server.spawn().map_err(|error| ClusterError::io("run", "postgres", error))
    }

    async fn until_ready(&mut self, deadline: Instant) -> Result<(), ClusterError> {
        while Instant::now() < deadline {
            if let Some(child) = &mut self.child
                && let Ok(Some(status)) = child.try_wait()
            {
                return Err(self.ended_badly(Some(status)));
            }
            if self.answers().await? {
                return Ok(());
            }
            sleep(LOOK_AGAIN).await;
        }
        Err(ClusterError::Silent { log: self.log.clone() })
    }

    /// Whether it takes connections already. A refused password is none that time would heal.
    async fn answers(&self) -> Result<bool, ClusterError> {
        match self.options("postgres", &self.passwords.superuser, "postgres").connect().await {
            Ok(connection) => Ok(connection.close().await.is_ok()),
            Err(sqlx::Error::Database(said)) if matches!(said.code().as_deref(), Some("28P01" | "28000")) => {
                let (path, data) = (self.passwords_path.clone(), self.data.clone());
                Err(ClusterError::Refused { path, data, said: said.message().to_owned() })
            }
            Err(_) => Ok(false),
        }
    }

    async fn control(&self, arguments: &[&str]) -> Result<std::process::Output, ClusterError> {
        let mut control = self.tools.command("pg_ctl");
        control.arg("-D").arg(&self.data).args(arguments);
        self.account.output(control, "pg_ctl").await
    }

    /// The socket lives in the data itself, which only the server's account and root may enter. A path too long
    /// for a socket leaves loopback alone.
    fn socket_folder(&self) -> &Path {
        let longest = self.data.join(".s.PGSQL.65535");
        if longest.as_os_str().len() > SOCKET_PATH_LIMIT { Path::new("") } else { &self.data }
    }

    fn ended_badly(&self, status: Option<ExitStatus>) -> ClusterError {
        let status = status.map_or_else(|| "unknown".to_owned(), |status| status.to_string());
        ClusterError::Ended { status, log: self.log.clone(), last_words: last_lines(&self.log, 5) }
    }
}

/// The major version that made the data; `None` when there is no data.
fn major_of(data: &Path) -> Result<Option<u32>, ClusterError> {
    if !data.exists() {
        return Ok(None);
    }
    let path = data.join("PG_VERSION");
    let text = fs::read_to_string(&path).map_err(|_| ClusterError::NotACluster { data: data.to_owned() })?;
    text.trim().parse().map(Some).map_err(|_| ClusterError::NotACluster { data: data.to_owned() })
}

fn free_port() -> Result<u16, ClusterError> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    Ok(bound.map_err(|error| ClusterError::io("find", "a free port on 127.0.0.1", error))?.port())
}

fn port_is_taken(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err()
}

fn last_lines(path: &Path, count: usize) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
