//! A stream goes on for hours; the right to follow it may not. Whoever loses it hears the end, and nobody else does.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Method, Request};
use chrono::TimeDelta;
use engine::RunState;
use futures::StreamExt;
use serde_json::json;
use uuid::Uuid;

use super::service_accounts;
use crate::console::{browser::Browser, desk};
use crate::http::{Http, project};
use crate::support::story::Story;
use crate::support::world::Do;

const HOUR: u64 = 3_600_000;
const PATIENCE: Duration = Duration::from_secs(30);

struct Followed {
    path: String,
    body: BodyDataStream,
}

impl Followed {
    async fn begin(http: &Http, path: String, cookie: &str) -> Followed {
        let request = Request::get(&path).header("accept", "text/event-stream").header("cookie", cookie);
        let answer = http.open(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status(), 200, "{path}");
        let mut body = answer.into_body().into_data_stream();
        body.next().await.expect("it begins").unwrap();
        Followed { path, body }
    }

    async fn ends(mut self) {
        let end = async { while self.body.next().await.is_some() {} };
        tokio::time::timeout(PATIENCE, end).await.unwrap_or_else(|_| panic!("{} goes on", self.path));
    }
}

/// Both kinds of streams, followed by the same caller.
async fn follow(http: &Http, run: Uuid, cookie: &str) -> [Followed; 2] {
    let of_the_run = project(&format!("/workflows/{run}/stream"));
    [Followed::begin(http, project("/events"), cookie).await, Followed::begin(http, of_the_run, cookie).await]
}

/// A run whose stream has no end of its own.
async fn waiting(story: &Story) -> Uuid {
    let run = story.start([Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_caller_may_no_longer_follow_it_and_others_go_on() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let http = http.with_console(desk::console(&http.realm, false).await);
    let run = waiting(&story).await;
    let admin = http.acting("admin");
    let [mut others, _] = follow(&http.acting("operator"), run, "").await;

    let keys = json!({ "name": "follower", "permissions": ["events.read", "workflows.read"] });
    let made = service_accounts::make(&http, keys).await;
    let machine = follow(&http.bearing(&service_accounts::bearer(&http, &made).await), run, "").await;
    let member = follow(&http.acting("viewer"), run, "").await;
    let mut browser = Browser::at(&http);
    browser.sign_in("publisher").await;
    let cookie: Vec<String> = browser.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let session = follow(&http, run, &cookie.join("; ")).await;

    let path = project(&format!("/service-accounts/{}/disable", made["id"].as_str().unwrap()));
    admin.post(&path, json!({})).await.with(200);
    let members = admin.get(&project("/members")).await.with(200);
    let viewer = members["items"].as_array().unwrap().iter().find(|m| m["username"] == "viewer").unwrap();
    admin.delete(&project(&format!("/members/{}", viewer["id"].as_str().unwrap()))).await;
    let csrf = browser.csrf().await;
    browser.send(Method::POST, "/console/logout", &[("x-csrf-token", &csrf)]).await;

    for stream in machine.into_iter().chain(member).chain(session) {
        stream.ends().await;
    }
    let closed = tokio::time::timeout(Duration::ZERO, async { while others.body.next().await.is_some() {} });
    assert!(closed.await.is_err(), "those who may follow go on");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_does_not_outlive_its_token() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = waiting(&story).await;
    let streams = follow(&http.acting("viewer"), run, "").await;
    http.realm.clock.advance(TimeDelta::minutes(61));
    for stream in streams {
        stream.ends().await;
    }
    story.end().await;
}
