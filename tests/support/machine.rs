//! A machine with the real agent on it, in processes that can be killed: the one that was started, and the one that it keeps
//! working. Its driver only pretends.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::cluster::Folder;
use super::process::{children_of, gpuaas, signal};
use crate::artifacts::yard::Yard;
use crate::http::admin;

pub struct Machine {
    pub id: Uuid,
    folder: Folder,
    words: Vec<String>,
    /// What is said besides, to enrol.
    enrols: Vec<String>,
    child: Child,
}

impl Machine {
    /// Enrolled, and with so many seconds for a program that is tried.
    pub async fn start(yard: &Yard, trial_seconds: u64) -> Machine {
        let (id, enrols) = newcomer(yard, "gpu-1").await;
        let folder = Folder::new();
        let (home, seconds) = (folder.0.join("agent").display().to_string(), trial_seconds.to_string());
        let words = ["agent", "--data-dir", &home, "--driver", "simulated", "--trial-seconds", &seconds];
        let words = words.map(str::to_owned).to_vec();
        let child = spawn(&folder, &[&words[..], &enrols].concat());
        let machine = Machine { id, folder, words, enrols, child };
        machine.reports(yard, 0).await;
        machine
    }

    /// A file in the agent's own folder.
    pub fn home(&self, name: &str) -> PathBuf {
        self.folder.0.join("agent").join(name)
    }

    /// A file beside it.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    pub fn read(&self, name: &str) -> Option<Value> {
        serde_json::from_slice(&fs::read(self.home(name)).ok()?).ok()
    }

    /// Waits for a report after the one of this number, and answers its own.
    pub async fn reports(&self, yard: &Yard, after: i64) -> i64 {
        let newer = "select report_sequence > $2[1]::bigint from nodes where id = $1";
        yard.story.until_true("the node reports", newer, self.id, &[&after.to_string()]).await;
        self.sequence(yard).await
    }

    pub async fn sequence(&self, yard: &Yard) -> i64 {
        let last = sqlx::query_scalar("select report_sequence from nodes where id = $1").bind(self.id);
        last.fetch_one(&yard.story.pool).await.expect("a node")
    }

    /// Waits until this is so; it takes as long as processes take.
    pub async fn until<T>(&self, what: &str, mut seen: impl FnMut() -> Option<T>) -> T {
        for _ in 0..6000 {
            if let Some(seen) = seen() {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("never: {what}\n{}", self.said());
    }

    /// The process that works, if it is there.
    pub fn worker(&self) -> Option<u32> {
        children_of(self.child.id()).first().copied()
    }

    /// With SIGKILL, the one that was started: whoever works is left alone.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait().map(drop)).expect("it is killed");
    }

    pub fn start_again(&mut self) {
        self.child = spawn(&self.folder, &self.words);
    }

    /// And from now on people reach it there.
    pub fn start_again_at(&mut self, address: &str) {
        let words = ["--address", address].map(str::to_owned);
        self.child = spawn(&self.folder, &[&self.words[..], &words].concat());
    }

    /// By the line that enrolled it.
    pub fn enrol_again(&mut self) {
        self.child = spawn(&self.folder, &[&self.words[..], &self.enrols].concat());
    }

    /// By a line that makes it another node.
    pub async fn enrol_anew(&mut self, yard: &Yard, name: &str) {
        (self.id, self.enrols) = newcomer(yard, name).await;
        self.enrol_again();
    }

    /// Another one on the same folder, to its end.
    pub fn second(&self) -> (ExitStatus, String) {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let output = gpuaas(&words).output().expect("the binary runs");
        (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// As a service manager stops it.
    pub fn stop(&mut self) -> ExitStatus {
        signal("-TERM", self.child.id());
        self.child.wait().expect("it ends")
    }

    pub fn said(&self) -> String {
        fs::read_to_string(self.beside("log")).unwrap_or_default()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A node that nobody is yet, and what a machine says to be it.
async fn newcomer(yard: &Yard, name: &str) -> (Uuid, Vec<String>) {
    let made = yard.http.post(&admin("/nodes"), json!({ "name": name })).await.with(201);
    let id = made["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let token = made["enrolment_token"].as_str().expect("a token");
    let platform = format!("http://{}", yard.address);
    (id, ["--enroll", token, "--platform", &platform].map(str::to_owned).to_vec())
}

fn spawn(folder: &Folder, words: &[String]) -> Child {
    let log = File::options().create(true).append(true).open(folder.0.join("log")).expect("a log");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = gpuaas(&words);
    command.env_remove("DOCKER_HOST").stdout(log.try_clone().expect("a log")).stderr(log);
    command.spawn().expect("the binary runs")
}
