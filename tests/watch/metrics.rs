//! Every queue, workflow, step, agent, webhook and rollup is measured, by every kind of process.

use agent::Simulated;
use serde_json::json;
use store::{event_relays, readings};
use workflows::sequencer::number_all;

use super::scraped;
use crate::billing::office::Office;
use crate::events::sequenced;
use crate::http::{Http, project};
use crate::support::docker::PORT;
use crate::support::platform::{Platform, profile};
use crate::support::realm::EXAMPLE;
use crate::support::story::Story;

fn has(page: &str, line: &str) {
    assert!(page.lines().any(|one| one.starts_with(line)), "no {line} in\n{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_shows_in_the_measures_of_its_workflow_its_steps_and_its_node() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (_, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    platform.succeeds(run).await;
    let page = scraped(&platform.http).await;
    has(&page, r#"gpuaas_workflow_runs_ended_total{workflow="instance.deploy",state="succeeded"} 1"#);
    has(&page, r#"gpuaas_workflow_run_duration_seconds_count{workflow="instance.deploy"} 1"#);
    let steps: Vec<String> = sqlx::query_scalar(
        "select distinct name from engine.step where run_id = $1 and op in ('activity', 'transact')",
    )
    .bind(run)
    .fetch_all(&platform.story.pool)
    .await
    .unwrap();
    assert!(steps.len() > 5, "{steps:?}");
    for step in steps {
        let labels = format!(r#"workflow="instance.deploy",step="{step}",direction="do""#);
        has(&page, &format!("gpuaas_workflow_step_duration_seconds_count{{{labels}}} "));
        has(&page, &format!(r#"gpuaas_workflow_step_tries_total{{{labels},outcome="succeeded"}} "#));
    }
    for kind in platform.story.engine.kinds() {
        has(&page, &format!(r#"gpuaas_workflow_live_runs{{workflow="{}",state="running"}} 0.0"#, kind.name));
    }
    has(&page, r#"gpuaas_agent_silent_seconds{node="gpu-1"} "#);
    has(&page, r#"gpuaas_agent_open_tasks{node="gpu-1"} 0.0"#);
    has(&page, r#"gpuaas_app_instances{status="running"} 1.0"#);
    has(&page, r#"gpuaas_nodes{status="active"} 1.0"#);
    has(&page, "gpuaas_engine_processes 1.0");
    has(&page, "gpuaas_readings_age_seconds 0");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_counted_by_type_where_they_are_numbered_and_webhooks_by_how_they_fare() {
    let story = Story::new().await;
    let (http, sequencer) = sequenced(&story).await;
    let body = json!({ "url": "https://hooks.example.com/gpuaas" });
    let webhook = http.post(&project("/webhooks"), body).await.with(201)["id"].clone();
    for subject in ["a", "b"] {
        crate::events::tell(&story.pool, subject).await;
    }
    story
        .until_true(
            "both are numbered",
            "select count(*) = 2 and $1::uuid is not null and $2::text[] is not null from outbox
             where seq is not null and type = 'apps.version.staged'",
            uuid::Uuid::nil(),
            &[],
        )
        .await;
    sequencer.stop().await;
    let fails = "update webhooks set failures = 1, failing_since = engine.now() - interval '90 seconds'";
    sqlx::query(fails).execute(&story.pool).await.unwrap();
    let page = scraped(&http).await;
    let labels = format!(r#"webhook={webhook},project="{EXAMPLE}""#);
    has(&page, &format!("gpuaas_webhook_failing_seconds{{{labels}}} 9"));
    has(&page, &format!("gpuaas_webhook_failing_events_behind{{{labels}}} 2.0"));
    has(&page, r#"gpuaas_events_total{type="apps.version.staged"} 2"#);
    has(&page, r#"gpuaas_events_total{type="nodes.lost"} 0"#);
    has(&page, "gpuaas_outbox_unnumbered 0.0");
    has(&page, r#"gpuaas_webhooks{status="active"} 1.0"#);
    has(&page, "gpuaas_webhook_events_behind 2.0");
    has(&page, "gpuaas_rollup_windows_due 0.0");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_far_nats_is_behind_is_measured_once_anything_was_passed_on() {
    let story = Story::new().await;
    for subject in ["a", "b", "c"] {
        crate::events::tell(&story.pool, subject).await;
    }
    number_all(story.engine.pool()).await.unwrap();
    story.advance(std::time::Duration::from_secs(400)).await;
    let mut conn = story.pool.acquire().await.unwrap();
    assert_eq!(readings::relay(&mut conn).await.unwrap().behind, 0, "nobody asked for NATS");
    event_relays::hold(&mut conn, EXAMPLE).await.unwrap();
    event_relays::reached(&mut conn, EXAMPLE, 1, 7).await.unwrap();
    let behind = readings::relay(&mut conn).await.unwrap();
    assert!(behind.behind == 2 && behind.oldest_seconds >= 400.0, "{behind:?}");
    event_relays::reached(&mut conn, EXAMPLE, 3, 7).await.unwrap();
    let arrived = readings::relay(&mut conn).await.unwrap();
    assert!(arrived.behind == 0 && arrived.oldest_seconds < 1.0, "{arrived:?}");
    drop(conn);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn verdicts_on_usage_are_counted() {
    let office = Office::open().await;
    let mut wrong = office.event("c", 1).await;
    wrong["data"]["usage_unit"] = json!("words");
    let events = [office.event("a", 1).await, office.event("b", 1).await, office.event("a", 1).await, wrong];
    office.tell(&events).await.with(200);
    let page = scraped(&office.platform.http).await;
    has(&page, r#"gpuaas_usage_events_total{verdict="accepted"} 2"#);
    has(&page, r#"gpuaas_usage_events_total{verdict="duplicate"} 1"#);
    has(&page, r#"gpuaas_usage_events_total{verdict="rejected"} 1"#);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_database_what_is_in_memory_is_still_shown() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    story.pool.close().await;
    story.engine.pool().bare().close().await;
    let page = scraped(&http).await;
    has(&page, "gpuaas_engine_commits_total ");
    assert!(!page.contains("gpuaas_readings_age_seconds"), "nothing was ever read");
}
