//! The real binary as a child process: run to its end, or started and stopped.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

/// `gpuaas` with no configuration but what the test gives it.
pub fn gpuaas(arguments: &[&str]) -> Command {
    alone(Command::new(env!("CARGO_BIN_EXE_gpuaas")), arguments)
}

/// The same, listening to its terminal even where the tests were told not to.
pub fn gpuaas_at_a_terminal(arguments: &[&str]) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_gpuaas")]);
    alone(command, arguments)
}

fn alone(mut command: Command, arguments: &[&str]) -> Command {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("GPUAAS_")) {
        command.env_remove(name);
    }
    command.current_dir("/").args(arguments).stdin(Stdio::null());
    command
}

/// What a command said, in the order of a test's interest.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

pub fn run(arguments: &[&str]) -> Said {
    gpuaas(arguments).output().expect("the binary runs").into()
}

/// Ctrl-C.
pub fn interrupt(process: &Child) {
    signal("-INT", process.id());
}

pub fn signal(which: &str, process: u32) {
    let sent = Command::new("kill").args([which, &process.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the process takes signals");
}

/// The processes that a process has started and that are there still.
pub fn children_of(process: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let started = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    started.collect::<String>().split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// A started `gpuaas serve`. It is killed with the test if the test does not end it.
pub struct Serve {
    child: Child,
    log: PathBuf,
}

impl Serve {
    /// One that only drives runs.
    pub fn workers(folder: &Path, database_url: &str, more: &[&str]) -> Serve {
        Serve::start(folder, "--workers-only", database_url, more)
    }

    /// One that only answers requests.
    pub fn api(folder: &Path, database_url: &str, more: &[&str]) -> Serve {
        Serve::start(folder, "--api-only", database_url, more)
    }

    /// `folder` keeps what it says on stderr.
    fn start(folder: &Path, role: &str, database_url: &str, more: &[&str]) -> Serve {
        let mut command = gpuaas(&["serve", role, "--database-url", database_url]);
        command.args(more);
        Serve::of(folder, command)
    }

    /// Any other command of which a test awaits words and the end.
    pub fn of(folder: &Path, mut command: Command) -> Serve {
        let log = folder.join(format!("serve-{}.log", Uuid::new_v4().simple()));
        let child = command.stderr(File::create(&log).expect("a log file")).spawn();
        Serve { child: child.expect("the binary runs"), log }
    }

    /// Any signal.
    pub fn signal(&self, which: &str) {
        signal(which, self.child.id());
    }

    /// What a service manager sends first.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Returns once it has said so.
    pub fn says(&mut self, words: &str) {
        while !self.said().contains(words) {
            assert!(self.is_running(), "it ended without a word of {words:?}: {}", self.said());
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).expect("its log")
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|ended| ended.is_none())
    }

    pub fn ends(mut self) -> (ExitStatus, String) {
        (self.child.wait().expect("it ends"), self.said())
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A started `gpuaas dev`. It is killed with the test if the test does not stop it; its database then ends too.
pub struct Dev {
    child: Child,
    pub data: PathBuf,
    /// What it says on stderr; a file, so that it never waits for a reader.
    pub log: PathBuf,
    pub ready: Value,
    /// What it printed for whoever started it.
    pub banner: String,
}

impl Dev {
    /// Returns once it has said that it is ready.
    pub fn start(data: &Path, more: &[&str]) -> Dev {
        let ready_file = data.with_extension("ready");
        let mut command = gpuaas(&["dev", "--port", "0"]);
        command.arg("--data-dir").arg(data).arg("--ready-file").arg(&ready_file).args(more);
        let log = data.with_extension("log");
        let stderr = File::create(&log).expect("a log file");
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().expect("the binary runs");
        let stdout = child.stdout.take().expect("piped");
        let mut banner = String::new();
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            banner += &format!("{line}\n");
            if line.starts_with("Ctrl-C stops everything") {
                break;
            }
        }
        if !banner.contains("is ready") {
            panic!("gpuaas dev did not become ready: {}", fs::read_to_string(log).unwrap_or_default());
        }
        let ready = fs::read_to_string(ready_file).expect("the ready file is there before the banner");
        let ready = serde_json::from_str(&ready).expect("the ready file is JSON");
        Dev { child, data: data.to_owned(), log, ready, banner }
    }

    /// How the application role reaches the database.
    pub fn database_url(&self) -> String {
        let passwords = fs::read_to_string(self.data.join("postgres-passwords.toml")).expect("passwords");
        let password =
            passwords.lines().find_map(|line| line.strip_prefix("application = \"")).expect("a password");
        let port = self.postmaster_line(4);
        format!("postgres://gpuaas_app:{}@127.0.0.1:{port}/gpuaas", password.trim_end_matches('"'))
    }

    pub fn postmaster_line(&self, line: usize) -> String {
        let file = fs::read_to_string(self.data.join("postgres/postmaster.pid")).expect("a running server");
        file.lines().nth(line - 1).expect("the line").trim().to_owned()
    }

    /// The whole answer to a GET.
    pub fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\n"), "")
    }

    /// The same, with a bearer token.
    pub fn get_as(&self, path: &str, token: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nauthorization: Bearer {token}\r\n"), "")
    }

    /// A token of one of the seeded people, from the built-in issuer.
    pub fn token(&self, username: &str) -> String {
        let form = format!("grant_type=password&client_id=gpuaas&username={username}&password={username}");
        let head = "POST /realms/gpuaas/protocol/openid-connect/token HTTP/1.1\r\n\
            content-type: application/x-www-form-urlencoded\r\n";
        let answer = self.send(head, &form);
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        let answer: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("no token: {answer}"));
        answer["access_token"].as_str().expect("a token").to_owned()
    }

    /// The whole answer to a form.
    pub fn post_form(&self, path: &str, form: &str) -> String {
        let head = format!("POST {path} HTTP/1.1\r\ncontent-type: application/x-www-form-urlencoded\r\n");
        self.send(&head, form)
    }

    /// The status and the JSON body of the answer to a POST.
    pub fn post_as(&self, path: &str, token: &str, body: &Value) -> (u16, Value) {
        self.change_as("POST", path, token, body)
    }

    /// The same to a PUT.
    pub fn put_as(&self, path: &str, token: &str, body: &Value) -> (u16, Value) {
        self.change_as("PUT", path, token, body)
    }

    fn change_as(&self, method: &str, path: &str, token: &str, body: &Value) -> (u16, Value) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n"
        );
        let answer = self.send(&head, &body.to_string());
        let status = answer.split_whitespace().nth(1).and_then(|status| status.parse().ok());
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        (status.expect("a status"), serde_json::from_str(body).unwrap_or_default())
    }

    fn send(&self, head: &str, body: &str) -> String {
        let url = self.ready["api_url"].as_str().expect("api_url");
        let address = url.strip_prefix("http://").expect("http");
        let mut stream = TcpStream::connect(address).expect("the API listens");
        let length = body.len();
        let rest = format!("host: {address}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{rest}{body}").as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// Ctrl-C, then the exit status and what was said on stderr.
    pub fn stop(self) -> (ExitStatus, String) {
        interrupt(&self.child);
        self.ends()
    }

    /// The exit status and what was said on stderr, once it ends by itself.
    pub fn ends(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("it ends");
        (status, fs::read_to_string(&self.log).expect("its log"))
    }

    /// As a crash would: nothing is stopped, the database server stays behind.
    pub fn kill(mut self) {
        self.child.kill().and_then(|()| self.child.wait().map(drop)).expect("it is killed");
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            interrupt(&self.child);
            let _ = self.child.wait();
        }
    }
}
