//! What can keep `gpuaas dev` from having its database, each with the way out.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Output;

#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(
        "Postgres is not installed: found no initdb, postgres and pg_ctl on PATH or under /usr/lib/postgresql. \
         Install it (Debian: apt-get install postgresql), or name a server with --database-url"
    )]
    NoPostgres,
    #[error(
        "the data was made by Postgres {data}, and this machine has {}. Install Postgres {data}, move the data with \
         pg_upgrade, or choose another --data-dir",
        majors(.here)
    )]
    OtherMajor { data: u32, here: Vec<u32> },
    #[error(
        "Postgres refuses to run as root, and there is no user `postgres` to run it under. Install the postgresql \
         package, which makes that user, or start as another user"
    )]
    NoAccount,
    #[error(
        "Postgres runs as user `postgres`, who may not enter {}, on the way to {}. \
         Choose another --data-dir (for example /var/lib/gpuaas), or open that folder: chmod o+x {}",
        .closed.display(), .data.display(), .closed.display()
    )]
    Closed { closed: PathBuf, data: PathBuf },
    #[error(
        "{} is in use by {holder}. Stop it first, or choose another --data-dir and --port",
        .path.display()
    )]
    Held { holder: String, path: PathBuf },
    #[error("{} exists and is not a Postgres cluster. Move it away, or choose another --data-dir", .data.display())]
    NotACluster { data: PathBuf },
    #[error(
        "{} is gone, and without its passwords nobody can open {}. Restore the file, or move the data away to begin anew",
        .path.display(), .data.display()
    )]
    PasswordsLost { path: PathBuf, data: PathBuf },
    #[error("cannot use the passwords in {}: {why}", .path.display())]
    Passwords { path: PathBuf, why: String },
    #[error(
        "Postgres refuses the superuser's password: {said}. {} does not belong to {}: restore the file that was made with \
         the data, or move both away to begin anew",
        .path.display(), .data.display()
    )]
    Refused { path: PathBuf, data: PathBuf, said: String },
    #[error("Postgres ended ({status}). Its last words, from {}:\n{last_words}", .log.display())]
    Ended { status: String, log: PathBuf, last_words: String },
    #[error("Postgres runs and does not answer. See {}", .log.display())]
    Silent { log: PathBuf },
    #[error("{program} failed ({status}): {said}")]
    Program { program: String, status: String, said: String },
    #[error("cannot {verb} {what}: {cause}")]
    Io { verb: &'static str, what: String, cause: io::Error },
}

impl ClusterError {
    pub fn io(verb: &'static str, what: impl AsRef<Path>, cause: io::Error) -> ClusterError {
        ClusterError::Io { verb, what: what.as_ref().display().to_string(), cause }
    }

    pub fn program(program: &str, output: &Output) -> ClusterError {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        ClusterError::Program { program: program.to_owned(), status: output.status.to_string(), said }
    }
}

fn majors(here: &[u32]) -> impl Display {
    let mut here = here.to_vec();
    here.dedup();
    match here.as_slice() {
        [] => "none".to_owned(),
        some => some.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    }
}
