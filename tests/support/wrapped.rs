//! Opening what is handed over wrapped, once.

use axum::http::Method;
use serde_json::Value;

use crate::http::{Answer, Http};

/// All that the token of the answer's `credential` opens.
pub async fn open(http: &Http, handed: &Value) -> Value {
    fetch(http, handed).await.with(200)["data"].clone()
}

/// Whether it opens anything; it does so once.
pub async fn opens(http: &Http, handed: &Value) -> bool {
    fetch(http, handed).await.status == 200
}

async fn fetch(http: &Http, handed: &Value) -> Answer {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let (token, path) = (text(&handed["credential"]["token"]), text(&handed["credential"]["unwrap_path"]));
    http.bearing("").send(Method::POST, &path, &[("x-vault-token", &token)], None).await
}

/// User name and password of an intent.
pub async fn unwrap(http: &Http, intent: &Value) -> (String, String) {
    let opened = open(http, intent).await;
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    (text(&opened["username"]), text(&opened["password"]))
}
