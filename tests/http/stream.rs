//! A run's stream: the whole first, then what changes, then its end.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use engine::RunState;
use futures::StreamExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Http, project};
use crate::support::story::Story;
use crate::support::world::{Do, touch};

const HOUR: u64 = 3_600_000;
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
struct Event {
    name: String,
    id: String,
    data: Value,
}

/// Every event until the stream ends.
async fn events(http: &Http, run: Uuid, last_seen: Option<&str>) -> Vec<Event> {
    events_while(http, run, last_seen, std::future::ready(())).await
}

/// `meanwhile` happens once the stream has told its first event.
async fn events_while(
    http: &Http,
    run: Uuid,
    last_seen: Option<&str>,
    meanwhile: impl Future<Output = ()>,
) -> Vec<Event> {
    let mut request = Request::get(project(&format!("/workflows/{run}/stream")));
    if let Some(id) = last_seen {
        request = request.header("last-event-id", id);
    }
    let response = http.open(request.body(Body::empty()).unwrap()).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let whole = async {
        let mut body = response.into_body().into_data_stream().map(Result::unwrap).fuse();
        let mut chunks: Vec<_> = body.next().await.into_iter().collect();
        meanwhile.await;
        chunks.extend(body.collect::<Vec<_>>().await);
        String::from_utf8(chunks.concat()).unwrap()
    };
    let text = tokio::time::timeout(PATIENCE, whole).await.expect("the stream ends");
    text.split("\n\n").filter(|block| block.contains("event:")).map(parse).collect()
}

fn parse(block: &str) -> Event {
    let mut event = Event::default();
    for (field, value) in block.lines().filter_map(|line| line.split_once(": ")) {
        match field {
            "event" => value.clone_into(&mut event.name),
            "id" => value.clone_into(&mut event.id),
            "data" => event.data = serde_json::from_str(value).unwrap(),
            _ => {}
        }
    }
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_the_whole_then_the_changes_and_ends_with_the_run() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(HOUR), touch("a")]).await;
    story.until(run, &[RunState::Waiting]).await;

    let signal = async {
        story.signal(run, "word", "k", json!("go")).await;
    };
    let told = events_while(&http, run, None, signal).await;
    assert_eq!(told[0].name, "snapshot");
    assert!(told[0].data["steps"].is_array());
    let last = told.last().unwrap();
    assert_eq!((last.name.as_str(), &last.data["status"]), ("run", &json!("succeeded")));
    let touched = |event: &&Event| {
        event.name == "step" && event.data["key"] == "a" && event.data["state"] == "succeeded"
    };
    assert!(told.iter().any(|event| touched(&event)), "{told:#?}");

    // Whoever has seen the end learns nothing new; whoever has not gets the whole again.
    assert!(events(&http, run, Some(&last.id)).await.is_empty());
    let again = events(&http, run, Some("0-unknown")).await;
    assert_eq!((again.len(), again[0].name.as_str(), &again[0].id), (1, "snapshot", &last.id));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_when_the_process_stops() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    let (told, ()) = tokio::join!(events(&http, run, None), async { http.state.drain() });
    assert_eq!(told.len(), 1);
    story.end().await;
}
