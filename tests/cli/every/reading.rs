//! What only looks: at oneself, the catalog, instances, and what was written, told and done. And signing in, before all of it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use axum::extract::Form;
use axum::http::{Method, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use workflows::sequencer::{Hints, Sequencer, number_all};

use super::Stage;
use crate::cli::Shell;
use crate::cli::instances::{Town, answer};
use crate::http::project;

#[tokio::test(flavor = "multi_thread")]
async fn every_command_that_looks() {
    let town = Town::new().await;
    let mut operator = town.shell("operator");
    town.version().await;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    answer(&operator.ask(&["up", "hello", "--port", &port, "-o", "json"]).await);
    let admin = town.platform.http.acting("project-admin");
    let traced = [("x-request-id", "c-traced")];
    let entitlement = json!({ "enabled": true, "reason": "we need it" });
    let path = project("/apps/entitlements/hello");
    admin.send(Method::PUT, &path, &traced, Some(entitlement)).await.with(200);
    number_all(town.platform.story.engine.pool()).await.unwrap();

    let stranger = town.stranger();
    let viewer = town.shell("viewer");
    Stage::of(&viewer).well("whoami", [&["whoami"]; 3]).await;
    Stage::of(&stranger).badly("whoami", [&["whoami"]; 3]).await;
    let browser = operator.path("tools/xdg-open");
    std::fs::create_dir_all(browser.parent().unwrap()).unwrap();
    std::fs::write(&browser, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    operator.set("PATH", format!("{}:{path}", browser.parent().unwrap().display()));
    // Whether or not the node told of its health already.
    let stage = Stage::of(&operator)
        .hiding(format!(":{port}"), ":PORT")
        .hiding(format!(" {port}"), " PORT")
        .hiding("unhealthy", "unknown")
        .hiding("healthy", "unknown");
    stage.shows("apps", &["apps"], &["apps", "nothing"]).await;
    stage.shows("apps_one", &["apps", "hello"], &["apps", "hello", "--version", "9.9.9"]).await;
    stage.shows("plan", &["plan", "hello", "--gpus", "2"], &["plan", "hello", "--gpus", "9"]).await;
    let (down, nobody) = (["plan", "hello", "--action", "down"], ["plan", "nobody", "--action", "down"]);
    stage.shows("plan_action", &down, &nobody).await;
    stage.shows("ps", &["ps"], &["ps", "--status", "happy"]).await;
    let listening = TcpListener::bind(format!("127.0.0.1:{port}")).expect("it is free still");
    stage.shows("open", &["open", "hello"], &["open", "hello", "--endpoint", "ssh"]).await;
    drop(listening);
    stage.shows("logs", &["logs", "hello"], &["logs", "nobody"]).await;
    stage.shows("events", &["events", "hello"], &["events", "--type", "apps.happy"]).await;
    stage.shows("trace", &["trace", "c-traced"], &["trace", "nobody-asked"]).await;
    let auditor = town.shell("project-admin");
    let (done, bad) = (["audit", "--correlation-id", "c-traced"], ["audit", "--since", "yesterday"]);
    Stage::of(&auditor).shows("audit", &done, &bad).await;

    let sequencer = Sequencer::start(&town.platform.story.engine, &Hints::default());
    stage.follows(&["ps", "--watch"], "running").await;
    stage.follows(&["logs", "hello", "-f"], "simulated").await;
    stage.follows(&["events", "-f", "--limit", "1"], "apps.").await;
    sequencer.stop().await;
    town.end().await;
}

/// An issuer for which the operator's password is `operator`, and whose page somebody is at already.
async fn issuer(token: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let discovery = json!({
        "token_endpoint": format!("{url}/token"), "device_authorization_endpoint": format!("{url}/device"),
    });
    let device = json!({
        "device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": format!("{url}/device"), "expires_in": 60,
        "interval": 0,
    });
    let grant = async move |Form(form): Form<Vec<(String, String)>>| -> (StatusCode, Json<Value>) {
        let wrong = form.iter().any(|(name, value)| name == "password" && value != "operator");
        match wrong {
            true => (
                StatusCode::BAD_REQUEST,
                Json(
                    json!({ "error": "invalid_grant", "error_description": "nobody has this name and password" }),
                ),
            ),
            false => (StatusCode::OK, Json(json!({ "access_token": token.clone(), "token_type": "Bearer" }))),
        }
    };
    let router = Router::new()
        .route("/.well-known/openid-configuration", get(async move || Json(discovery)))
        .route("/device", post(async move || Json(device)))
        .route("/token", post(grant));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_in() {
    let town = Town::new().await;
    let issuer = issuer(town.platform.http.acting("operator").token().to_owned()).await;
    let shell = Shell::new();
    let url = town.url();
    let stage = Stage::of(&shell).hiding(&issuer, "ISSUER").hiding(&url, "PLATFORM");
    let words = ["login", "--url", &url, "--issuer", &issuer, "--project", "example"];
    let refused = [&words[..], &["--no-input"]].concat();
    stage.shows("login", &words, &refused).await;
    // What was found by its slug is kept by its id, and the profile speaks from now on.
    let kept = std::fs::read_to_string(shell.path(".config/gpuaas/config.toml")).unwrap();
    assert!(kept.contains(&crate::support::realm::EXAMPLE.to_string()), "{kept}");
    assert_eq!(shell.ask(&["ps", "-o", "name"]).await.code, Some(0));
    town.end().await;
}
