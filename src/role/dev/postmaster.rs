//! The server that may already run on the data, as its pid file tells. A pid alone proves nothing after a reboot,
//! so the process behind it must be a Postgres server on this very folder. The file itself is left to Postgres:
//! it also guards against processes of a killed server that still use its memory.

use std::fs;
use std::path::Path;

use super::ClusterError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Postmaster {
    pub pid: u32,
    pub port: u16,
}

impl Postmaster {
    /// The living server of `data`, if there is one.
    pub fn running(data: &Path) -> Result<Option<Postmaster>, ClusterError> {
        let path = data.join("postmaster.pid");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ClusterError::io("read", &path, error)),
        };
        Ok(parse(&text).filter(|postmaster| serves(postmaster.pid, data)))
    }
}

/// Line 1 is the pid, line 4 the port.
fn parse(text: &str) -> Option<Postmaster> {
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok()?;
    let port = lines.nth(2)?.trim().parse().ok()?;
    Some(Postmaster { pid, port })
}

fn serves(pid: u32, data: &Path) -> bool {
    let Ok(command) = fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let mut words = command.split(|byte| *byte == 0);
    let program = words.next().unwrap_or_default();
    program.ends_with(b"postgres") && words.any(|word| word == data.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_file_gives_pid_and_port() {
        let file = "4242\n/data/postgres\n1763263000\n54321\n/data/postgres\n127.0.0.1\n  1234  5\nready\n";
        assert_eq!(parse(file), Some(Postmaster { pid: 4242, port: 54321 }));
        assert_eq!(parse("4242\n"), None, "a file that is still being written names nobody yet");
    }

    #[test]
    fn a_living_process_that_is_not_postgres_is_not_adopted() {
        assert!(!serves(std::process::id(), Path::new("/")));
    }
}
