//! What processes cost, read from /proc: CPU time so far and memory held. Postgres is many processes; its cost is
//! that of the postmaster, of the children it has reaped, and of those that live.

use std::fs;
use std::time::Duration;

use sqlx::PgConnection;

use crate::failure::Failure;

/// Linux counts process times in hundredths of a second, whatever the kernel's own tick is.
const TICK: Duration = Duration::from_millis(10);

/// CPU time a process has used, without its children.
pub fn cpu_of(pid: u32) -> Result<Duration, Failure> {
    Ok(Stat::read(pid)?.own())
}

/// Memory a process holds now, in bytes.
pub fn resident(pid: u32) -> Result<u64, Failure> {
    status_bytes(pid, "VmRSS:")
}

/// The most memory a process ever held, in bytes.
pub fn peak_resident(pid: u32) -> Result<u64, Failure> {
    status_bytes(pid, "VmHWM:")
}

/// The server behind a connection, which must run on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Postgres {
    postmaster: u32,
}

impl Postgres {
    pub async fn behind(conn: &mut PgConnection) -> Result<Postgres, Failure> {
        let backend = sqlx::query_scalar!(r#"select pg_backend_pid() as "pid!""#).fetch_one(conn).await?;
        Ok(Postgres { postmaster: Stat::read(backend.unsigned_abs())?.parent })
    }

    pub fn cpu(&self) -> Result<Duration, Failure> {
        let postmaster = Stat::read(self.postmaster)?;
        let living: Duration = processes()?
            .filter_map(|pid| Stat::read(pid).ok())
            .filter(|stat| stat.parent == self.postmaster)
            .map(|stat| stat.own())
            .sum();
        Ok(postmaster.own() + postmaster.reaped + living)
    }
}

struct Stat {
    parent: u32,
    user: Duration,
    system: Duration,
    reaped: Duration,
}

impl Stat {
    fn read(pid: u32) -> Result<Stat, Failure> {
        let path = format!("/proc/{pid}/stat");
        let text = fs::read_to_string(&path).map_err(Failure::io(format!("read {path}")))?;
        Stat::parse(&text).ok_or_else(|| Failure::Setup(format!("{path} is not as expected")))
    }

    /// The program's name may hold spaces and parentheses, so fields are counted from its last parenthesis.
    fn parse(text: &str) -> Option<Stat> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u32>().ok().map(|ticks| TICK * ticks);
        Some(Stat {
            parent: fields.get(1)?.parse().ok()?,
            user: ticks(11)?,
            system: ticks(12)?,
            reaped: ticks(13)? + ticks(14)?,
        })
    }

    fn own(&self) -> Duration {
        self.user + self.system
    }
}

fn processes() -> Result<impl Iterator<Item = u32>, Failure> {
    let entries = fs::read_dir("/proc").map_err(Failure::io("list /proc"))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

fn status_bytes(pid: u32, field: &str) -> Result<u64, Failure> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).map_err(Failure::io(format!("read {path}")))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map(|k| k * 1024).ok_or_else(|| Failure::Setup(format!("{path} has no {field}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = Stat::parse("7 (a) (b c) S 3 7 7 0 -1 0 0 0 0 0 150 50 20 5 20 0").unwrap();
        assert_eq!((stat.parent, stat.own(), stat.reaped), (3, TICK * 200, TICK * 25));
    }

    #[test]
    fn a_living_process_holds_memory() {
        let me = std::process::id();
        assert!(resident(me).unwrap() > 0);
        assert!(peak_resident(me).unwrap() >= resident(me).unwrap() / 2);
    }
}
