//! Asking a workload from outside, on the loopback port it is bound to, so the image needs no tools: whether it serves, and
//! whether it answers its version's own tests.

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;

use domain::SmokeVerdict;
use domain::manifest::{SmokeMethod, SmokeTest};
use node_protocol::{Probe, ProbeKind};
use reqwest::{Client, Response};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// A workload that starts is asked again so soon, then with pauses that double; later as often as its probe says.
const EAGER: Duration = Duration::from_millis(10);
/// So much of an answer is read; words beyond it are not looked for.
const MOST_READ: usize = 1024 * 1024;

/// Asks until it serves. Answers how often it took, or `None` when the grace period is over.
pub(crate) async fn until_healthy<F, S>(probe: &Probe, asks: F) -> Option<u32>
where
    F: Fn() -> S,
    S: Future<Output = bool>,
{
    let deadline = Instant::now() + Duration::from_secs(u64::from(probe.grace_seconds));
    let most = Duration::from_secs(u64::from(probe.interval_seconds.max(1)));
    let mut pause = EAGER;
    for tries in 1.. {
        if asks().await {
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

async fn answers(path: &str, port: u16, patience: Duration) -> bool {
    let Ok(client) = &*CLIENT else { return false };
    let asked = client.get(url(path, port)).timeout(patience);
    asked.send().await.is_ok_and(|answer| answer.status().as_u16() < 400)
}

/// Makes the request of one test, once.
pub(crate) async fn ask(test: &SmokeTest, port: u16) -> SmokeVerdict {
    let asked = match &*CLIENT {
        Ok(client) => fetch(client, test, port).await.map_err(|error| {
            if error.is_timeout() {
                format!("was not answered within {} s", test.timeout_seconds)
            } else {
                format!("was not answered: {}", error.without_url())
            }
        }),
        Err(error) => Err(format!("was not asked: {error}")),
    };
    let (status, message) = match asked {
        Ok((status, body)) => (Some(status), wrong(test, status, &body)),
        Err(trouble) => (None, Some(trouble)),
    };
    SmokeVerdict { name: test.name.clone(), passed: message.is_none(), status, message }
}

async fn fetch(client: &Client, test: &SmokeTest, port: u16) -> reqwest::Result<(u16, String)> {
    let request = match test.method {
        SmokeMethod::Get => client.get(url(&test.path, port)),
        SmokeMethod::Post => client.post(url(&test.path, port)),
    };
    let request = match &test.body {
        Some(body) => request.json(body),
        None => request,
    };
    let answer = request.timeout(Duration::from_secs(u64::from(test.timeout_seconds))).send().await?;
    Ok((answer.status().as_u16(), beginning(answer).await?))
}

async fn beginning(mut answer: Response) -> reqwest::Result<String> {
    let mut body = Vec::new();
    while body.len() < MOST_READ
        && let Some(more) = answer.chunk().await?
    {
        body.extend_from_slice(&more);
    }
    body.truncate(MOST_READ);
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// What is not as the test expects.
fn wrong(test: &SmokeTest, status: u16, body: &str) -> Option<String> {
    if status != test.expect_status {
        return Some(format!("answered {status} where {} is expected", test.expect_status));
    }
    let words = test.expect_body_contains.as_deref().filter(|words| !body.contains(*words))?;
    Some(format!("answered without the words `{words}`"))
}

/// One for all: to make a client takes longer than to ask. Redirects are not followed, because a workload must not send the
/// agent anywhere, and no connection is kept, because a port may have another tenant the next time.
static CLIENT: LazyLock<reqwest::Result<Client>> = LazyLock::new(|| {
    let client = Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy();
    client.pool_max_idle_per_host(0).build()
});

fn url(path: &str, port: u16) -> String {
    format!("http://127.0.0.1:{port}/{}", path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_judged_by_its_status_and_its_words() {
        let test = |expect_status, words: Option<&str>| SmokeTest {
            name: "it answers".to_owned(),
            method: SmokeMethod::Get,
            path: "/".to_owned(),
            port: None,
            body: None,
            expect_status,
            expect_body_contains: words.map(str::to_owned),
            timeout_seconds: 1,
        };
        assert_eq!(wrong(&test(200, Some("ok")), 200, "it is ok"), None);
        assert_eq!(wrong(&test(404, None), 404, ""), None);
        assert_eq!(wrong(&test(204, None), 200, "ok").unwrap(), "answered 200 where 204 is expected");
        assert_eq!(wrong(&test(200, Some("ok")), 200, "no").unwrap(), "answered without the words `ok`");
    }
}
