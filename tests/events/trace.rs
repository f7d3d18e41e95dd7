//! What one id set off, as one timeline: whole and in order for those who may read it, and nothing for anybody else.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use agent::Simulated;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{Http, project};
use crate::support::docker::PORT;
use crate::support::platform::{Platform, id_of, profile};
use crate::support::story::Story;

const TRACE: &str = "/api/v1/trace/c-trace";

fn words<'a>(entries: &'a [Value], field: &str) -> Vec<&'a str> {
    entries.iter().filter_map(|entry| entry[field].as_str()).collect()
}

async fn whole(http: &Http, limit: u32) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = http.get(&format!("{TRACE}?limit={limit}{cursor}")).await.with(200);
        all.extend(page["items"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_is_traced_from_its_request_to_its_events() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let body = json!({
        "app_slug": "hello", "version": number, "display_name": "hello",
        "placement_intent": { "allocation_id": allocation },
    });
    let operator = platform.http.acting("operator");
    let mut request = Request::post(project("/app-instances"))
        .header("x-request-id", "c-trace")
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap();
    // As it is for everybody who comes over a connection.
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 9))));
    let made = operator.answer_to(request).await.with(202);
    let run = id_of(&made["workflow"]);
    platform.succeeds(run).await;

    let all = whole(&operator, 200).await;
    let kinds: BTreeSet<&str> = words(&all, "kind").into_iter().collect();
    assert_eq!(kinds, BTreeSet::from(["event", "node_task", "request", "step", "workflow"]));
    let times = words(&all, "at");
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(words(&all, "kind")[..2], ["request", "workflow"], "the cause comes before what it caused");
    let of = |kind: &str| -> Vec<Value> { all.iter().filter(|e| e["kind"] == kind).cloned().collect() };
    assert_eq!(words(&of("request"), "name"), ["create_app_instance"]);
    let workflow = of("workflow");
    assert_eq!(
        (words(&workflow, "name"), words(&workflow, "status")),
        (vec!["instance.deploy"], vec!["succeeded"])
    );
    let told = ["apps.instance.requested", "apps.instance.deploying", "apps.instance.running"];
    assert_eq!(words(&of("event"), "name"), told);
    assert_eq!(of("node_task")[0]["workflow_id"], json!(run));
    assert!(of("step").len() > 5, "{all:#?}");
    // However small the pages, they are the same timeline.
    assert_eq!(whole(&operator, 3).await, all);
    assert_eq!(whole(&platform.http, 7).await, all, "the platform's own people see it too");
    // What an instance uses carries the id under which it was deployed.
    platform.story.advance(std::time::Duration::from_secs(30)).await;
    platform.decommission(id_of(&made)).await;
    let later = whole(&operator, 200).await;
    let used: Vec<&Value> = later.iter().filter(|entry| entry["kind"] == "usage").collect();
    let units: BTreeSet<&str> = used.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert!(units.contains("session_seconds"), "{used:#?}");
    assert!(
        used.iter().all(|entry| entry["subject"] == json!(format!("app_instance:{}", id_of(&made)))),
        "{used:#?}"
    );
    assert_eq!(whole(&operator, 3).await, later, "usage has its place on small pages too");
    for nobody in ["neighbour", "stranger", "member"] {
        let refused = platform.http.acting(nobody).get(TRACE).await.with(404);
        assert_eq!(refused["code"], "trace_not_found", "{nobody}");
    }
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_long_lived_instance_used_is_told_by_the_hour() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    sqlx::raw_sql(
        "insert into usage_records (id, org_id, project_id, app_instance_id, usage_source, usage_unit, quantity, occurred_at,
             window_start, window_end, correlation_id, source, event_id, recorded_at)
         select gen_random_uuid(), '00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0000-000000000001',
             '00000000-0000-0000-0000-000000000001', 'app_runtime', unit, 60, at, at, at + interval '1 minute', 'c-trace',
             '/' || unit, n::text, at + interval '2 seconds'
         from generate_series(0, 60 * 30 - 1) n, unnest(array['gpu_seconds', 'session_seconds']) unit,
             lateral (select timestamptz '2026-01-01T00:30:00Z' + n * interval '1 minute' as at) told",
    )
    .execute(&story.pool)
    .await
    .unwrap();
    let all = whole(&http, 200).await;
    assert_eq!(all.len(), 2 * 31, "of each unit one entry an hour");
    let quantities: Vec<i64> = all.iter().map(|entry| entry["quantity"].as_i64().unwrap()).collect();
    assert_eq!(quantities[..4], [1800, 1800, 3600, 3600]);
    assert_eq!(quantities.iter().sum::<i64>(), 2 * 60 * 60 * 30);
    assert!(words(&all, "at").is_sorted());
    for limit in [1, 3, 7] {
        assert_eq!(whole(&http, limit).await, all, "pages of {limit}");
    }
    story.end().await;
}

/// 450 runs, two a minute, each with two steps at once; the first 250 of them have one more a day later, when all have begun.
/// The last one failed. They are of these days, because runs of long ago are forgotten.
const REUSED: &str = "
    with nights as (
        select n, ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid as id,
               date_trunc('day', engine.now()) - interval '3 days' + n / 2 * interval '1 minute' as at,
               case when n < 250 then date_trunc('day', engine.now()) - interval '2 days' + n * interval '1 second' end as late
        from generate_series(0, 449) n
    ), made as (
        insert into engine.run (id, kind, version, org_id, project_id, correlation_id, input, state, created_at, finished_at)
        select id, 'test.nightly', 1, '00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0000-000000000001',
               'c-trace', '{}', case when n = 449 then 'failed' else 'succeeded' end, at,
               coalesce(late, at + interval '2 seconds')
        from nights
    )
    insert into engine.journal (run_id, seq, epoch, token, at, progress, correlation_id, events)
    select id, seq, 1, gen_random_uuid(), began, true, 'c-trace',
           json_build_array(json_build_object('e', 'intend', 'name', name, 'key', '', 'pos', seq, 'op', 'activity',
               'state', 'succeeded', 'hash', '00', 'started_at', began, 'finished_at', began))
    from nights
    cross join lateral (values (0, 'build', at), (1, 'test', at + interval '1 second'), (2, 'report', late))
        step (seq, name, began)
    where began is not null";

#[tokio::test(flavor = "multi_thread")]
async fn an_id_used_again_and_again_shows_all_its_runs_to_the_newest() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    sqlx::raw_sql(REUSED).execute(&story.pool).await.unwrap();
    let all = whole(&http, 200).await;
    let of = |kind: &str| all.iter().filter(|entry| entry["kind"] == kind).count();
    assert_eq!((of("workflow"), of("step")), (450, 2 * 450 + 250));
    let ids: BTreeSet<&str> = words(&all, "id").into_iter().collect();
    assert_eq!(ids.len(), all.len(), "each once");
    assert!(words(&all, "at").is_sorted());
    assert!(all.iter().any(|entry| entry["kind"] == "workflow" && entry["status"] == "failed"));
    assert_eq!(whole(&http, 37).await, all, "however small the pages");
    // They were never driven, so they keep no promise of the engine.
    let undone = "delete from engine.journal where correlation_id = 'c-trace';
                  delete from engine.run where correlation_id = 'c-trace'";
    sqlx::raw_sql(undone).execute(&story.pool).await.unwrap();
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_used_in_two_projects_shows_each_its_own() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    for (who, at) in [("project-admin", 1_u128), ("neighbour", 2)] {
        let path = format!("/api/v1/projects/{}/service-accounts", Uuid::from_u128(at));
        let headers = [("x-request-id", "c-trace")];
        http.acting(who).send(Method::POST, &path, &headers, Some(json!({ "name": "ci" }))).await.with(201);
    }
    for (who, at) in [("project-admin", 1_u128), ("neighbour", 2)] {
        let all = whole(&http.acting(who), 50).await;
        assert_eq!(words(&all, "project_id"), [Uuid::from_u128(at).to_string()]);
        assert_eq!(words(&all, "kind"), ["audit"], "what came over no connection is no request");
    }
    assert_eq!(whole(&http.acting("owner"), 50).await.len(), 2);
    // Whoever may not read the audit log does not read it here.
    http.acting("stranger").get(TRACE).await.with(404);
    http.get("/api/v1/trace/c-nothing").await.with(404);
    http.get("/api/v1/trace/no%20id").await.with(404);
    http.get(&format!("{TRACE}?cursor=tr1.e30")).await.with(400);
    story.end().await;
}
