//! One request is one trace: what it sets off hours later and elsewhere belongs to the span that the caller named, and every
//! line says what it is about.

use std::collections::{HashMap, HashSet};

use agent::Simulated;
use axum::http::Method;
use opentelemetry::SpanId;
use opentelemetry_sdk::trace::SpanData;
use serde_json::json;
use tracing_subscriber::filter::LevelFilter;
use uuid::Uuid;

use crate::http::project;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::told::Told;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

/// Everything about a deployment, asked for under the caller's own trace.
async fn deploy(platform: &Platform, allocation: Uuid) -> Uuid {
    let number = platform.version(&profile(PORT, 30)).await;
    let body = json!({
        "app_slug": "hello", "version": number, "display_name": "hello",
        "placement_intent": { "allocation_id": allocation },
    });
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let headers = [("traceparent", parent.as_str()), ("x-request-id", "c-traced")];
    let operator = platform.http.acting("operator");
    let made = operator.send(Method::POST, &project("/app-instances"), &headers, Some(body)).await.with(202);
    platform.succeeds(id_of(&made["workflow"])).await;
    id_of(&made)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_request_sets_off_is_one_trace_under_the_callers_span() {
    let told = Told::from_now_on(LevelFilter::INFO);
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let instance = deploy(&platform, allocation).await;
    let at_event =
        sqlx::query_scalar::<_, Option<String>>("select traceparent from outbox where subject = $1")
            .bind(instance.to_string())
            .fetch_all(&platform.story.pool)
            .await
            .unwrap();
    agent.end().await;
    platform.end().await;

    let spans: Vec<SpanData> =
        told.spans().into_iter().filter(|span| span.span_context.trace_id().to_string() == TRACE).collect();
    let request = spans.iter().find(|span| span.name.starts_with("POST ")).expect("the request's span");
    assert_eq!(request.parent_span_id.to_string(), CALLER);
    let request_id = request.span_context.span_id();
    let drives: Vec<&SpanData> = spans.iter().filter(|span| span.name == "instance.deploy").collect();
    assert!(drives.len() > 1, "a run that waits is driven several times: {}", drives.len());
    assert!(drives.iter().all(|drive| drive.parent_span_id == request_id), "drives belong to the request");

    // Steps lie inside what the run is about, and that inside a drive.
    let parents: HashMap<SpanId, SpanId> =
        spans.iter().map(|span| (span.span_context.span_id(), span.parent_span_id)).collect();
    let drives: HashSet<SpanId> = drives.iter().map(|drive| drive.span_context.span_id()).collect();
    let steps: Vec<&SpanData> = spans.iter().filter(|span| !attribute(span, "step").is_empty()).collect();
    let names: HashSet<String> = steps.iter().map(|step| attribute(step, "step")).collect();
    for expected in ["begin_deploy", "reserve_placement", "launch_workload", "mark_running"] {
        assert!(names.contains(expected), "{expected} is not among {names:?}");
    }
    for step in steps {
        let mut above = std::iter::successors(Some(step.parent_span_id), |id| parents.get(id).copied());
        assert!(above.any(|id| drives.contains(&id)), "{} hangs in the air", step.name);
    }
    // Subscribers can go on from there too.
    assert_eq!(at_event.len(), 3, "{at_event:?}");
    for parent in at_event {
        assert_eq!(parent, Some(format!("00-{TRACE}-{request_id}-01")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_of_a_request_a_run_and_a_task_says_what_it_is_about() {
    let told = Told::from_now_on(LevelFilter::DEBUG);
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let instance = deploy(&platform, allocation).await;
    agent.end().await;
    platform.end().await;

    let lines = told.lines();
    let about = format!("app_instance_id={instance}");
    let of_the_kind = [
        "operating_mode=\"tenant_dedicated\"",
        "control_plane_scope=\"project\"",
        "runtime_backend=\"launchable_oci\"",
    ];
    let among = |words: &[&str]| {
        let found: Vec<&str> =
            lines.lines().filter(|line| words.iter().all(|word| line.contains(word))).collect();
        assert!(!found.is_empty(), "no line has {words:?}");
        found
    };
    let wanted = ["correlation_id=c-traced", "org_id=", "project_id=", &about];
    for line in among(&["answered", "POST", "/app-instances", "status=202"]) {
        for word in wanted.iter().chain(&of_the_kind) {
            assert!(line.contains(word), "{word} is missing: {line}");
        }
        assert!(line.contains(&format!("trace_id=\"{TRACE}\"")), "{line}");
    }
    // Whatever is said inside a step.
    for line in among(&["drive{", "step{", "c-traced"]) {
        for word in wanted.iter().chain(&of_the_kind) {
            assert!(line.contains(word), "{word} is missing: {line}");
        }
    }
    for line in among(&["a task was seen to"]) {
        assert!(line.contains("correlation_id=\"c-traced\"") && line.contains(&about), "{line}");
    }
}
