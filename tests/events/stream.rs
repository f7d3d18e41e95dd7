//! Events as they happen: whoever is cut off and comes back gets every event once.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures::StreamExt;
use serde_json::Value;
use store::outbox;
use uuid::Uuid;
use workflows::sequencer::number_all;

use super::{sequenced, tell};
use crate::http::{Http, project};
use crate::support::realm::EXAMPLE;
use crate::support::story::Story;

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Default, PartialEq)]
pub struct Sent {
    name: String,
    id: String,
    pub data: Value,
}

/// A client of one connection; what arrived and was not asked for is lost with it.
pub struct Client {
    body: BodyDataStream,
    text: String,
}

impl Client {
    pub async fn open(http: &Http, query: &str, last_seen: Option<&str>) -> Client {
        let path = project(&format!("/events{query}"));
        let mut request = Request::get(path).header("accept", "text/event-stream");
        if let Some(id) = last_seen {
            request = request.header("last-event-id", id);
        }
        let response = http.open(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Client { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// The next event, or nothing once the stream has ended.
    pub async fn next(&mut self) -> Option<Sent> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let sent = parse(block);
                self.text = rest.to_owned();
                if !sent.name.is_empty() {
                    return Some(sent);
                }
                continue;
            }
            let chunk = tokio::time::timeout(PATIENCE, self.body.next()).await.expect("it goes on")?;
            self.text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    }
}

fn parse(block: &str) -> Sent {
    let mut sent = Sent::default();
    for (field, value) in block.lines().filter_map(|line| line.split_once(": ")) {
        match field {
            "event" => value.clone_into(&mut sent.name),
            "id" => value.clone_into(&mut sent.id),
            "data" => sent.data = serde_json::from_str(value).unwrap(),
            _ => {}
        }
    }
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_cut_off_at_random_gets_every_event_once() {
    const EVENTS: usize = 150;
    let story = Story::new().await;
    let (http, sequencer) = sequenced(&story).await;
    let pool = story.pool.clone();
    let telling = tokio::spawn(async move {
        let mut told = Vec::new();
        for n in 0..EVENTS {
            told.push(tell(&pool, &n.to_string()).await);
        }
        told
    });
    let mut seen: Vec<Uuid> = Vec::new();
    let mut last = "0".to_owned();
    while seen.len() < EVENTS {
        let mut client = Client::open(&http, "", Some(&last)).await;
        for _ in 0..rand::random_range(1..20).min(EVENTS - seen.len()) {
            let sent = client.next().await.expect("an event");
            assert_eq!(sent.name, "event");
            seen.push(sent.data["id"].as_str().unwrap().parse().unwrap());
            last = sent.id;
        }
    }
    assert_eq!(seen, telling.await.unwrap(), "each once, in the order of their transactions");
    sequencer.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_a_past_begins_with_what_is_told_next_and_ends_with_the_process() {
    let story = Story::new().await;
    let (http, sequencer) = sequenced(&story).await;
    tell(&story.pool, "before").await;
    number_all(story.engine.pool()).await.unwrap();
    let mut client = Client::open(&http, "?type=apps.version.staged&subject=mine", None).await;
    tell(&story.pool, "others").await;
    tell(&story.pool, "mine").await;
    let sent = client.next().await.unwrap();
    assert_eq!((sent.id.as_str(), &sent.data["subject"]), ("3", &Value::from("mine")));
    http.state.drain();
    assert_eq!(client.next().await, None);
    sequencer.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_resumes_before_what_is_kept_is_told_so_and_gets_the_rest() {
    let story = Story::new().await;
    let (http, sequencer) = sequenced(&story).await;
    for n in 1..=5 {
        tell(&story.pool, &n.to_string()).await;
    }
    number_all(story.engine.pool()).await.unwrap();
    let mut tx = story.pool.begin().await.unwrap();
    assert_eq!(outbox::forget(&mut tx, EXAMPLE, 0.0, 3).await.unwrap(), 3);
    tx.commit().await.unwrap();

    for stale in ["1", "99", "none"] {
        let mut client = Client::open(&http, "", Some(stale)).await;
        let reset = client.next().await.unwrap();
        assert_eq!((reset.name.as_str(), &reset.data["resumed_after"]), ("reset", &Value::from(3)));
        assert_eq!(client.next().await.unwrap().data["subject"], "4");
        assert_eq!(client.next().await.unwrap().data["subject"], "5");
    }
    let mut client = Client::open(&http, "", Some("3")).await;
    assert_eq!(
        client.next().await.unwrap().data["subject"],
        "4",
        "whoever saw the last that is gone missed nothing"
    );
    sequencer.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_numbered_reaches_the_streams_here() {
    let story = Story::new().await;
    // No sequencer and no hint here.
    let http = Http::over(&story).await;
    let mut client = Client::open(&http, "", None).await;
    tell(&story.pool, "far").await;
    number_all(story.engine.pool()).await.unwrap();
    assert_eq!(client.next().await.unwrap().data["subject"], "far");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_has_nothing_to_tell_says_that_it_is_alive() {
    let story = Story::new().await;
    let (http, sequencer) = sequenced(&story).await;
    let mut client = Client::open(&http, "", None).await;
    // Far beyond the interval, so that only a stream that has gone silent fails this.
    let heard = tokio::time::timeout(PATIENCE, async {
        while !client.text.contains(": heartbeat") {
            let chunk = client.body.next().await.expect("it does not end").unwrap();
            client.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    });
    assert!(heard.await.is_ok(), "only {:?} came", client.text);
    sequencer.stop().await;
    story.end().await;
}
