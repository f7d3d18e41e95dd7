//! The Postgres servers of the tests: the shared one that `./dev test` starts, and private ones that a story may
//! stop and start as it likes.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;
use uuid::Uuid;

/// A superuser's way into the shared server.
pub fn shared_server() -> PgConnectOptions {
    PgConnectOptions::from_str(&shared_server_url()).expect("GPUAAS_TEST_DATABASE_URL is a Postgres URL")
}

#[expect(clippy::disallowed_methods)]
pub fn shared_server_url() -> String {
    std::env::var("GPUAAS_TEST_DATABASE_URL")
        .expect("GPUAAS_TEST_DATABASE_URL names a server: run ./dev test")
}

/// A folder that is gone when the test is over. The account of a database server may pass through it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        let path = std::env::temp_dir().join(format!("gpuaas-test-{}", Uuid::new_v4().simple()));
        fs::create_dir(&path).expect("a new folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server of one test's own. It keeps its port over restarts, and ends with the test.
pub struct Cluster {
    folder: Folder,
    pub port: u16,
}

impl Cluster {
    pub fn start() -> Cluster {
        let folder = Folder::new();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let cluster = Cluster { folder, port: free.expect("a free port").port() };
        give_to_server(&cluster.folder.0);
        let auth = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"];
        run(server_command("initdb").arg("-D").arg(cluster.data()).args(auth));
        cluster.start_again();
        cluster
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// As a crash of the server would: sessions break, nothing is written, the next start recovers.
    pub fn stop_at_once(&self) {
        run(self.control("stop").args(["--mode=immediate", "--wait"]));
    }

    /// Returns when the server answers.
    pub fn start_again(&self) {
        let options = format!(
            "-h 127.0.0.1 -p {} -k {} -c fsync=off -c max_connections=200",
            self.port,
            self.folder.0.display()
        );
        run(self
            .control("start")
            .arg("--wait")
            .arg("--log")
            .arg(self.data().join("server.log"))
            .args(["-o", &options]));
    }

    fn data(&self) -> PathBuf {
        self.folder.0.join("data")
    }

    fn control(&self, verb: &str) -> Command {
        let mut control = server_command("pg_ctl");
        control.arg("-D").arg(self.data()).args([verb, "--silent"]);
        control
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.control("stop").args(["--mode=immediate", "--wait"]).status();
    }
}

/// A program of Postgres, under an account that it accepts.
fn server_command(program: &str) -> Command {
    let path = newest_folder().map_or_else(|| PathBuf::from(program), |folder| folder.join(program));
    let mut command = if is_root() { Command::new("runuser") } else { Command::new(&path) };
    if is_root() {
        command.args(["-u", "postgres", "--"]).arg(path);
    }
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn newest_folder() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
    versions.filter(|folder| folder.join("initdb").exists()).max()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

fn give_to_server(path: &Path) {
    if is_root() {
        run(Command::new("chown").arg("postgres").arg(path));
    }
}

fn run(command: &mut Command) {
    let status = command.status().expect("the program runs");
    assert!(status.success(), "{command:?} failed: {status}");
}
