//! What watches over the platform: metrics, alerts, dashboards, the pages they lead to, and the look for runs that stick.

mod deploy;
mod metrics;
mod retirement;
mod silence;
mod stuck;

use axum::body::{Body, to_bytes};
use axum::http::Request;

use crate::http::Http;

/// The page of metrics as Prometheus reads it.
pub async fn scraped(http: &Http) -> String {
    let response = http.open(Request::get("/metrics").body(Body::empty()).unwrap()).await;
    assert_eq!(response.status(), 200);
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(bytes.into()).unwrap()
}
