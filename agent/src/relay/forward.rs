//! One request through the relay. Where it goes is judged after the address was put together, so that no spelling of a path
//! leads out of the public API.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use reqwest::{Client, Url};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::ration::Ration;
use crate::drivers::Network;

/// So many bodies of one network's requests are in memory at once: a hundredth of the GiB that an instance has at least. What it
/// holds on to keeps no other network waiting.
const MOST_BODIES: usize = 8;
/// What the platform takes at most, and a little.
const MOST_BYTES: usize = 1100 * 1024;
/// How long a body may take, the wait for a place in memory included.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// What of a workload's request is passed on; it proves itself by `authorization` alone.
const PASSED: [&str; 12] = [
    "accept",
    "authorization",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-none-match",
    "last-event-id",
    "traceparent",
    "user-agent",
    "x-idempotency-key",
    "x-project-id",
    "x-request-id",
];

/// What of an answer is about one connection, or about browsers.
const KEPT_BACK: [&str; 5] = ["connection", "keep-alive", "set-cookie", "transfer-encoding", "upgrade"];

pub(super) struct Way {
    network: Network,
    platform: Url,
    client: Client,
    /// Places for bodies in memory.
    bodies: Semaphore,
    ration: Ration,
}

impl Way {
    pub(super) fn new(network: Network, platform: Url, client: Client) -> Way {
        Way { network, platform, client, bodies: Semaphore::new(MOST_BODIES), ration: Ration::default() }
    }
}

pub(super) async fn forward(
    State(way): State<Arc<Way>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    if !way.network.covers(peer.ip()) {
        return refusal(
            StatusCode::FORBIDDEN,
            "insufficient_permissions",
            "This is another instance's relay.",
        );
    }
    let Some(url) = target(&way.platform, request.uri()) else {
        return refusal(
            StatusCode::NOT_FOUND,
            "route_not_found",
            "The relay passes on /api/v1 and nothing else.",
        );
    };
    if let Some(wait) = way.ration.wait() {
        return too_often(wait);
    }
    let (head, body) = request.into_parts();
    let received = timeout(BODY_WITHIN, async {
        // Nothing to hold needs no place.
        let place = if body.is_end_stream() { None } else { Some(way.bodies.acquire().await) };
        (place, to_bytes(body, MOST_BYTES).await)
    });
    let Ok((_place, body)) = received.await else {
        return refusal(StatusCode::BAD_REQUEST, "invalid_request", "The body did not come in time.");
    };
    let Ok(body) = body else {
        return refusal(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", "The body is too large.");
    };
    let mut onward = way.client.request(head.method, url).body(body);
    for (name, value) in head.headers.iter().filter(|(name, _)| PASSED.contains(&name.as_str())) {
        onward = onward.header(name, value);
    }
    match onward.send().await {
        Ok(answer) => {
            way.ration.note(answer.status(), answer.headers());
            back(answer)
        }
        Err(error) => {
            tracing::debug!(error = %error.without_url(), "the platform did not answer the relay");
            refusal(StatusCode::BAD_GATEWAY, "upstream_error", "The platform does not answer.")
        }
    }
}

/// The platform's address for a request, if it is one of the public API.
fn target(platform: &Url, asked: &Uri) -> Option<Url> {
    let base = platform.as_str().trim_end_matches('/');
    let url = Url::parse(&format!("{base}{}", asked.path_and_query()?)).ok()?;
    let prefix = platform.path().trim_end_matches('/');
    let inside = url.path().strip_prefix(prefix)?.starts_with("/api/v1/");
    (inside && url.host() == platform.host() && url.port() == platform.port()).then_some(url)
}

/// As it comes, so that streams are streams here too.
fn back(answer: reqwest::Response) -> Response {
    let (status, headers) = (answer.status(), answer.headers().clone());
    let mut response = Response::new(Body::from_stream(answer.bytes_stream()));
    *response.status_mut() = status;
    let passed = |name: &HeaderName| !KEPT_BACK.contains(&name.as_str());
    let kept = headers.iter().filter(|(name, _)| passed(name));
    response.headers_mut().extend(kept.map(|(name, value)| (name.clone(), value.clone())));
    response
}

fn too_often(wait: Duration) -> Response {
    let message = "Too many requests without proof came from this instance within a minute.";
    let mut response = refusal(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message);
    let seconds = wait.as_millis().div_ceil(1000).to_string();
    if let Ok(seconds) = seconds.parse() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

/// In the words of the platform, so that clients read it as one of its errors.
fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    let body = json!({ "code": code, "message": message, "correlation_id": "", "details": {} });
    (status, Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(platform: &str, path: &str) -> Option<String> {
        target(&Url::parse(platform).unwrap(), &path.parse().unwrap()).map(String::from)
    }

    #[test]
    fn the_public_api_is_passed_on_and_nothing_else() {
        let platform = "http://10.0.0.1:8080";
        assert_eq!(leads(platform, "/api/v1/me?a=b").unwrap(), "http://10.0.0.1:8080/api/v1/me?a=b");
        assert_eq!(leads("https://p.test/at/", "/api/v1/me").unwrap(), "https://p.test/at/api/v1/me");
        for path in [
            "/",
            "/api/v1",
            "/api/v10/me",
            "/internal/v1/nodes/enroll",
            "/metrics",
            "/api/v1/../../internal/v1/nodes/enroll",
            "/api/v1/%2e%2e/%2E%2e/internal/v1/nodes/enroll",
            "/api/v1/..%5c..\\internal",
            "//evil.test/api/v1/me",
        ] {
            let uri: Result<Uri, _> = path.parse();
            let Ok(uri) = uri else { continue };
            let led = target(&Url::parse(platform).unwrap(), &uri).map(String::from);
            assert!(
                led.as_ref().is_none_or(|led| led.starts_with("http://10.0.0.1:8080/api/v1/")),
                "{path}: {led:?}"
            );
            assert!(!led.unwrap_or_default().contains("internal/v1"), "{path}");
        }
    }

    #[test]
    fn an_address_of_another_host_is_not_followed() {
        let absolute = leads("http://10.0.0.1:8080", "http://evil.test/api/v1/me");
        assert_eq!(absolute.unwrap(), "http://10.0.0.1:8080/api/v1/me", "the relay has one platform");
    }
}
