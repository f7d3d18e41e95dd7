//! The system account that Postgres runs under: our own, or `postgres` when we are root, which Postgres refuses.

use std::io;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tokio::process::Command;

use super::ClusterError;

const SERVER_ACCOUNT: &str = "postgres";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Account {
    Own,
    Postgres { uid: u32, gid: u32 },
}

impl Account {
    pub async fn choose() -> Result<Account, ClusterError> {
        // The kernel lists a process as owned by its effective user.
        let me =
            std::fs::metadata("/proc/self").map_err(|error| ClusterError::io("read", "/proc/self", error))?;
        if me.uid() != 0 {
            return Ok(Account::Own);
        }
        match (id("-u").await, id("-g").await) {
            (Some(uid), Some(gid)) => Ok(Account::Postgres { uid, gid }),
            _ => Err(ClusterError::NoAccount),
        }
    }

    /// Makes `command` run under this account, in a process group of its own so that Ctrl-C does not reach it.
    pub fn apply(self, command: &mut Command) {
        command.current_dir("/").process_group(0);
        if let Account::Postgres { uid, gid } = self {
            command.uid(uid).gid(gid);
        }
    }

    /// Runs a program under this account to its end.
    pub async fn output(self, mut command: Command, name: &str) -> Result<Output, ClusterError> {
        self.apply(&mut command);
        command.stdin(Stdio::null()).output().await.map_err(|error| ClusterError::io("run", name, error))
    }

    pub fn give(self, path: &Path) -> io::Result<()> {
        match self {
            Account::Own => Ok(()),
            Account::Postgres { uid, gid } => chown(path, Some(uid), Some(gid)),
        }
    }

    /// The outermost folder on the way to `folder` that this account may not enter.
    pub async fn closed_folder(self, folder: &Path) -> Option<PathBuf> {
        if self == Account::Own {
            return None;
        }
        let mut way: Vec<&Path> = folder.ancestors().collect();
        way.reverse();
        for step in way {
            let mut enter = Command::new("test");
            enter.arg("-x").arg(step);
            self.apply(&mut enter);
            if !enter.status().await.is_ok_and(|status| status.success()) {
                return Some(step.to_owned());
            }
        }
        None
    }
}

async fn id(what: &str) -> Option<u32> {
    let answer = Command::new("id").args([what, SERVER_ACCOUNT]).output().await.ok()?;
    String::from_utf8_lossy(&answer.stdout).trim().parse().ok()
}
