//! A worker in a process of its own, so that it can be killed or frozen for real: the test binary, started again as
//! one test that does nothing unless it is given orders.
//!
//! It ends when its parent does, because it watches its standard input.

use std::io::Read;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use engine::{Engine, Settings, Workers};
use serde::{Deserialize, Serialize};

use super::database::TestDatabase;
use super::failing::when;
use super::story::{quick, registry};
use super::world::World;

const ORDERS: &str = "GPUAAS_TEST_OUTSIDER";

/// What an outsider is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    pub slots: usize,
    pub lease: Duration,
    /// The signal it sends itself, once, at a failpoint.
    pub strike: Option<(Blow, String)>,
    /// The port of the transaction pooler that stands before its engine.
    pub pooler: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Blow {
    Kill,
    Stop,
    Continue,
}

impl Orders {
    pub fn work() -> Orders {
        Orders { slots: 32, lease: Duration::from_millis(500), strike: None, pooler: None }
    }

    pub fn strike(blow: Blow, point: &str) -> Orders {
        Orders { strike: Some((blow, point.to_owned())), ..Orders::work() }
    }
}

/// Settings under which a dead process is noticed within half a second.
pub fn short_lease() -> Settings {
    Settings {
        lease: Duration::from_millis(500),
        renew_every: Duration::from_millis(100),
        max_claims: 1000,
        ..quick()
    }
}

pub struct Outsider {
    process: Child,
    _stdin: ChildStdin,
}

impl Outsider {
    pub fn start(database: &TestDatabase, orders: &Orders) -> Outsider {
        let options = database.direct();
        let orders = serde_json::json!({"host": options.get_host(), "port": options.get_port(),
            "user": options.get_username(), "database": database.name, "orders": orders});
        let mut process = Command::new(std::env::current_exe().expect("this very binary"))
            .args(["--exact", "durable::kill::outsider", "--nocapture", "--test-threads=1"])
            .env(ORDERS, orders.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the test binary starts again");
        let stdin = process.stdin.take().expect("piped");
        Outsider { process, _stdin: stdin }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn send(&self, blow: Blow) {
        send(blow, self.pid());
    }

    /// Waits for a death that is sure to come.
    pub async fn dies(mut self) -> ExitStatus {
        let waited = async {
            loop {
                if let Some(status) = self.process.try_wait().expect("a child of ours") {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waited).await.expect("the outsider dies")
    }
}

impl Drop for Outsider {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn send(blow: Blow, pid: u32) {
    let signal = match blow {
        Blow::Kill => "-KILL",
        Blow::Stop => "-STOP",
        Blow::Continue => "-CONT",
    };
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the process takes signals");
}

/// Strikes this very thread, so that it is the one that stops: a signal sent to the process may be taken by any of its
/// threads, and the one that ought to be struck goes on until that thread is scheduled. Returns once a frozen process
/// is let go on.
fn strike_down(blow: Blow) {
    let signal = match blow {
        Blow::Kill => signal_hook::consts::SIGKILL,
        Blow::Stop => signal_hook::consts::SIGSTOP,
        Blow::Continue => signal_hook::consts::SIGCONT,
    };
    signal_hook::low_level::raise(signal).expect("a thread may strike itself");
}

/// The outsider's side: works until it is ended, or returns at once without orders.
#[expect(clippy::disallowed_methods)]
pub async fn obey_orders() {
    let Ok(told) = std::env::var(ORDERS) else { return };
    let told: serde_json::Value = serde_json::from_str(&told).expect("orders");
    let text = |field: &str| told[field].as_str().expect("text").to_owned();
    let orders: Orders = serde_json::from_value(told["orders"].clone()).expect("orders");
    let options = sqlx::postgres::PgConnectOptions::new()
        .host(&text("host"))
        .port(u16::try_from(told["port"].as_u64().expect("a port")).expect("a port"))
        .username(&text("user"))
        .database(&text("database"));
    let settings = Settings {
        slots: orders.slots,
        lease: orders.lease,
        renew_every: orders.lease / 5,
        pooler: orders.pooler.is_some(),
        ..short_lease()
    };
    let struck = std::sync::atomic::AtomicBool::new(false);
    let faults = orders.strike.and_then(|(blow, place)| {
        when(move |point| {
            let here = point.to_string() == place;
            if here && !struck.swap(true, std::sync::atomic::Ordering::SeqCst) {
                strike_down(blow);
            }
            None
        })
    });
    let before = orders.pooler.map(|port| options.clone().host("127.0.0.1").port(port));
    let engine = Engine::with_faults(before.unwrap_or_else(|| options.clone()), settings, faults);
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(4).connect_lazy_with(options);
    let _workers = Workers::start(&engine, Arc::new(World::new(pool)), registry());
    let parent_gone = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let _ = parent_gone.await;
    std::process::exit(0);
}
