//! The reference: pgbench, one single-row INSERT per transaction, prepared, on the same server. Sixteen clients give
//! the rate that throughput is compared with; one client gives "one insert", the unit of latency.

use std::process::Stdio;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection};
use tokio::process::Command;

use crate::failure::Failure;
use crate::server::{Database, execute, postgres_program};

const TABLE: &str =
    "create table reference (id bigserial primary key, workflow uuid not null, seq int not null,
    name text not null, output text not null, at timestamptz not null default now())";
const SCRIPT: &str = "insert into reference (workflow, seq, name, output)
    values ('00000000-0000-0000-0000-0000000000be', 1, 'step', repeat('x', 256));\n";

pub struct Reference {
    options: PgConnectOptions,
    time: Duration,
    script: std::path::PathBuf,
}

struct Measured {
    per_second: f64,
    latency_ms: f64,
}

impl Reference {
    /// In `database`, each measurement lasting `time`.
    pub async fn new(database: &Database, time: Duration) -> Result<Reference, Failure> {
        let mut conn = database.pool.acquire().await?;
        execute(&mut conn, TABLE.to_owned()).await?;
        let script = std::env::temp_dir().join(format!("gpuaas-bench-{}.sql", std::process::id()));
        std::fs::write(&script, SCRIPT).map_err(Failure::io(format!("write {}", script.display())))?;
        Ok(Reference { options: database.options.clone(), time, script })
    }

    /// Inserts per second with sixteen clients.
    pub async fn inserts_per_second(&self) -> Result<f64, Failure> {
        Ok(self.measure(&["-c", "16", "-j", "2"]).await?.per_second)
    }

    /// How long one insert takes one client, in milliseconds.
    pub async fn one_insert_ms(&self) -> Result<f64, Failure> {
        Ok(self.measure(&["-c", "1", "-j", "1"]).await?.latency_ms)
    }

    async fn measure(&self, clients: &[&str]) -> Result<Measured, Failure> {
        // Every measurement begins alike, with an empty table.
        let mut conn = self.options.connect().await?;
        execute(&mut conn, "truncate reference".to_owned()).await?;
        conn.close().await?;
        let mut pgbench = Command::new(postgres_program("pgbench"));
        pgbench.args(["-n", "-M", "prepared", "-f"]).arg(&self.script).args(clients);
        pgbench.args(["-T", &self.time.as_secs().max(1).to_string()]);
        pgbench.args(["-h", self.options.get_host(), "-p", &self.options.get_port().to_string()]);
        pgbench
            .args(["-U", self.options.get_username()])
            .arg(self.options.get_database().unwrap_or_default());
        let output = pgbench.stdin(Stdio::null()).output().await.map_err(Failure::io("run pgbench"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        parse(&said).ok_or_else(|| Failure::Program {
            program: "pgbench".into(),
            said: format!("{said}{}", String::from_utf8_lossy(&output.stderr)),
        })
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.script);
    }
}

fn parse(said: &str) -> Option<Measured> {
    let number_after = |label: &str| {
        let rest = said.lines().find_map(|line| line.strip_prefix(label))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    Some(Measured { per_second: number_after("tps = ")?, latency_ms: number_after("latency average = ")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_figures_are_read_from_what_pgbench_prints() {
        let said = "latency average = 0.348 ms\ninitial connection time = 2.1 ms\ntps = 2873.5 (without initial connection time)\n";
        let measured = parse(said).unwrap();
        assert_eq!((measured.per_second, measured.latency_ms), (2873.5, 0.348));
        assert!(parse("pgbench: error: connection failed\n").is_none());
    }
}
