//! A process that drives runs and does nothing else, so that what it costs can be told from what measuring costs, and
//! so that it can be killed.

use std::path::Path;
use std::process::Stdio;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use engine::{Engine, Workers};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use tokio::process::{Child, Command};

use crate::failure::Failure;
use crate::server::Database;
use crate::workload::{self, Env};

#[derive(Debug, Args)]
pub struct WorkerArgs {
    #[arg(long)]
    database_url: String,
}

/// The child's side: works until it is killed.
pub async fn run(args: &WorkerArgs) -> Result<bool, Failure> {
    let engine = Engine::new(PgConnectOptions::from_str(&args.database_url)?, workload::settings());
    let _workers = Workers::start(&engine, Arc::new(Env::default()), workload::registry());
    std::future::pending().await
}

/// The parent's side. A worker that is dropped is killed.
pub struct Worker {
    child: Child,
    pub pid: u32,
    pub name: &'static str,
}

impl Worker {
    pub fn start(database: &Database) -> Result<Worker, Failure> {
        let program = std::env::current_exe().map_err(Failure::io("find this program"))?;
        Worker::spawn("worker", &program, &["worker"], database)
    }

    /// The full server where it is built beside this program, else a bare worker. The name tells which it is.
    pub fn start_server(database: &Database) -> Result<Worker, Failure> {
        let program = std::env::current_exe().map_err(Failure::io("find this program"))?;
        let server = program.with_file_name("gpuaas");
        if !server.exists() {
            return Worker::start(database);
        }
        Worker::spawn(
            "gpuaas serve",
            &server,
            &["serve", "--listen", "127.0.0.1:0", "--set", "auth.allow_nobody=true"],
            database,
        )
    }

    fn spawn(
        name: &'static str,
        program: &Path,
        arguments: &[&str],
        database: &Database,
    ) -> Result<Worker, Failure> {
        let url = database.options.to_url_lossy().to_string();
        let mut command = Command::new(program);
        command.args(arguments).args(["--database-url", &url]);
        command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let child = command.spawn().map_err(Failure::io(format!("start {name}")))?;
        let pid = child.id().ok_or_else(|| Failure::Setup(format!("{name} ended at once")))?;
        Ok(Worker { child, pid, name })
    }

    /// SIGKILL: the process learns nothing and lets nothing go. One that ended before was not what was measured.
    pub async fn kill(mut self) -> Result<(), Failure> {
        let ended = self.child.try_wait().map_err(Failure::io(format!("look after {}", self.name)))?;
        if let Some(status) = ended {
            return Err(Failure::Setup(format!("{} ended by itself: {status}", self.name)));
        }
        self.child.kill().await.map_err(Failure::io(format!("kill {}", self.name)))
    }
}
