//! Opening what an intent hands over, once.

use axum::http::Method;
use serde_json::Value;

use crate::http::Http;

/// User name and password.
pub async fn unwrap(http: &Http, intent: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let (token, path) = (text(&intent["credential"]["token"]), text(&intent["credential"]["unwrap_path"]));
    let answer = http.bearing("").send(Method::POST, &path, &[("x-vault-token", &token)], None).await;
    let opened = answer.with(200);
    (text(&opened["data"]["username"]), text(&opened["data"]["password"]))
}
