//! Asking a workload whether it serves, from outside: on the loopback port it is bound to, so the image needs no tools.

use std::time::Duration;

use node_protocol::{Probe, ProbeKind};
use reqwest::Client;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// While a workload starts it is asked this often; later as often as its probe says.
const EAGER: Duration = Duration::from_millis(100);

/// Asks until it serves. Answers how often it took, or `None` when the grace period is over.
pub(crate) async fn until_healthy(probe: &Probe, port: u16) -> Option<u32> {
    let deadline = Instant::now() + Duration::from_secs(u64::from(probe.grace_seconds));
    let most = Duration::from_secs(u64::from(probe.interval_seconds.max(1)));
    let mut pause = EAGER;
    for tries in 1.. {
        if serves(probe, port).await {
            return Some(tries);
        }
        if Instant::now() + pause > deadline {
            return None;
        }
        sleep(pause).await;
        pause = (pause * 2).min(most);
    }
    None
}

pub(crate) async fn serves(probe: &Probe, port: u16) -> bool {
    let patience = Duration::from_secs(u64::from(probe.timeout_seconds.max(1)));
    match probe.kind {
        ProbeKind::Tcp => {
            matches!(timeout(patience, TcpStream::connect(("127.0.0.1", port))).await, Ok(Ok(_)))
        }
        ProbeKind::Http => answers(&probe.path, port, patience).await,
    }
}

/// Redirects are not followed: a workload must not send the agent anywhere.
async fn answers(path: &str, port: u16, patience: Duration) -> bool {
    let client =
        Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().timeout(patience).build();
    let Ok(client) = client else { return false };
    let url = format!("http://127.0.0.1:{port}/{}", path.trim_start_matches('/'));
    client.get(url).send().await.is_ok_and(|answer| answer.status().as_u16() < 400)
}
