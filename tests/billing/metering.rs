//! What the platform counts itself: only time that two reports vouch for, each second once, by the database's clock.

use std::sync::Arc;

use activities::Env;
use agent::Simulated;
use chrono::{DateTime, TimeDelta, Utc};
use domain::metering::WINDOWS_A_LOOK;
use engine::Engine;
use engine::testing::{Check, check_workflow};
use serde_json::json;
use store::{meters, open_windows};
use uuid::Uuid;
use workflows::billing::accrue::AccrueAllocations;

use super::ledger::rolled_up;
use super::office::Office;
use crate::http::{admin, project};
use crate::lifecycle::{let_time_pass, wait_for};
use crate::support::agent::RunningAgent;
use crate::support::database::TestDatabase;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, profile};

async fn open(office: &Office) {
    let mut conn = office.platform.story.pool.acquire().await.unwrap();
    meters::open(&mut conn, office.instance, "c-meter").await.unwrap();
}

async fn close(office: &Office) {
    let mut conn = office.platform.story.pool.acquire().await.unwrap();
    meters::close(&mut conn, office.instance).await.unwrap();
}

fn sums(records: &[(String, i64)]) -> (i64, i64) {
    let sum = |unit: &str| records.iter().filter(|(of, _)| of == unit).map(|(_, quantity)| quantity).sum();
    (sum("session_seconds"), sum("gpu_seconds"))
}

#[tokio::test(flavor = "multi_thread")]
async fn seconds_count_between_reports_that_both_showed_it_running() {
    let office = Office::open().await;
    open(&office).await;
    for (pause, running) in [(10, true), (10, true), (10, false), (10, true), (10, true)] {
        office.later(pause).await;
        office.beat(running).await;
    }
    // The clock runs on between the calls, so a second more or less is nobody's fault.
    close(&office).await;
    let (session, gpu) = sums(&office.records("").await);
    assert!((30..=32).contains(&session), "{session}");
    assert_eq!(gpu, 2 * session);
    for record in office.usage("").await["items"].as_array().unwrap() {
        assert_eq!(record["control_plane_component"], "main", "{record:#}");
    }
    close(&office).await;
    assert_eq!(sums(&office.records("").await).0, session, "closed twice is closed once");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_is_not_billed_for_it_and_old_news_change_nothing() {
    let office = Office::open().await;
    open(&office).await;
    office.later(50).await;
    office.beat(true).await;
    office.later(3600).await;
    office.beat(true).await;
    office.later(10).await;
    office.beat(true).await;
    // An older report than the last changes nothing, however late it arrives.
    office.later(5).await;
    office.node.beats(1, json!([])).await.with(200);
    office.later(5).await;
    office.beat(true).await;
    close(&office).await;
    let (session, _) = sums(&office.records("").await);
    assert!((70..=72).contains(&session), "{session}");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_meter_has_not_written_down_is_not_in_the_ledger_and_nobody_says_so() {
    let office = Office::open().await;
    let rated_until = async || -> DateTime<Utc> {
        office.usage("").await["rated_until"].as_str().unwrap().parse().unwrap()
    };
    let before = office.now().await;
    assert!(rated_until().await >= before, "nothing is used");
    open(&office).await;
    for _ in 0..2 {
        office.later(5).await;
        office.beat(true).await;
    }
    let pending: DateTime<Utc> = sqlx::query_scalar("select pending_from from meters where subject_id = $1")
        .bind(office.instance)
        .fetch_one(&office.platform.story.pool)
        .await
        .unwrap();
    assert_eq!(rated_until().await, pending, "these seconds are no record yet");
    assert!(pending < office.now().await - TimeDelta::seconds(8));
    close(&office).await;
    assert!(rated_until().await <= pending, "now they are, and their window waits to be rated");
    rolled_up(&office).await;
    let rated = office.now().await;
    assert!(rated_until().await >= rated);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn allocations_are_counted_to_their_release_and_counting_twice_counts_once() {
    let office = Office::open().await;
    office.later(300).await;
    office.run(&AccrueAllocations {}).await;
    office.run(&AccrueAllocations {}).await;
    let so_far: i64 =
        office.records("&usage_source=allocation").await.iter().map(|(_, seconds)| seconds).sum();
    assert!((4 * 240..=4 * 305).contains(&so_far), "whole windows of four GPUs: {so_far}");
    sqlx::query("update app_instances set status = 'decommissioned' where id = $1")
        .bind(office.instance)
        .execute(&office.platform.story.pool)
        .await
        .unwrap();
    let path = admin(&format!("/allocations/{}/release", office.allocation));
    office.platform.http.post(&path, json!({})).await.with(200);
    office.later(3600).await;
    office.run(&AccrueAllocations {}).await;
    office.run(&AccrueAllocations {}).await;
    let all: i64 = office.records("&usage_source=allocation").await.iter().map(|(_, seconds)| seconds).sum();
    assert!((4 * 300..=4 * 310).contains(&all), "{all}");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_counted_for_long_is_made_up_for_piece_by_piece() {
    const HOURS: u64 = 5;
    let office = Office::open().await;
    office.later(HOURS * 3600).await;
    let mut tx = office.platform.story.pool.begin().await.unwrap();
    meters::open_allocations(&mut tx).await.unwrap();
    let next = meters::accrue(&mut tx, None, 100).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(next, Some(Uuid::nil()), "the same allocations once more");
    let counted = async || {
        let (records, seconds): (i64, i64) = sqlx::query_as(
            "select count(*), coalesce(sum(quantity), 0)::bigint from usage_records where usage_source = 'allocation'",
        )
        .fetch_one(&office.platform.story.pool)
        .await
        .unwrap();
        (records, seconds)
    };
    let (records, _) = counted().await;
    assert!((1..=WINDOWS_A_LOOK + 1).contains(&records), "{records} in one transaction");
    office.run(&AccrueAllocations {}).await;
    let (_, seconds) = counted().await;
    let whole = 4 * 3600 * i64::try_from(HOURS).unwrap();
    assert!(
        (whole - 4 * 60..=whole + 4 * 60).contains(&seconds),
        "one run makes up for all of it: {seconds}"
    );
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_are_taken_for_rating_as_far_as_they_fit_into_memory() {
    let office = Office::open().await;
    let pool = &office.platform.story.pool;
    sqlx::raw_sql(
        "insert into usage_records (id, org_id, project_id, app_instance_id, usage_source, usage_unit, quantity, occurred_at,
             window_start, window_end, correlation_id, source, event_id)
         select gen_random_uuid(), gen_random_uuid(), '00000000-0000-0000-0000-000000000001', gen_random_uuid(), 'app_runtime',
             'tokens', 1, start, start, start + interval '1 minute', 'c', '/test', minute || '/' || n
         from unnest(array[12000, 12000, 25000]) with ordinality w(records, minute),
             lateral (select timestamptz '2026-01-01' + minute * interval '1 minute' as start) at,
             generate_series(1, records) n;
         insert into open_windows (project_id, window_start, window_end)
             select distinct project_id, window_start, window_end from usage_records",
    )
    .execute(pool)
    .await
    .unwrap();
    for expected in [1, 1, 1, 0] {
        let mut tx = pool.begin().await.unwrap();
        let taken = open_windows::due(&mut tx, 500).await.unwrap();
        open_windows::take(&mut tx, &taken).await.unwrap();
        assert_eq!(taken.len(), expected, "two windows hold too much, and one too large is taken by itself");
        tx.commit().await.unwrap();
    }
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_agent_costs_nothing_and_counts_on() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    let (node, folder) = (agent.id, agent.kill().await);
    let reports: i64 = sqlx::query_scalar("select report_sequence from nodes where id = $1")
        .bind(node)
        .fetch_one(&platform.story.pool)
        .await
        .unwrap();
    platform.story.advance(std::time::Duration::from_secs(20)).await;
    let agent = RunningAgent::again(&platform.http, folder, &driver);
    platform
        .story
        .until_true(
            "the agent that was started again has reported",
            "select report_sequence > ($2::text[])[1]::bigint from nodes where id = $1",
            node,
            &[&reports.to_string()],
        )
        .await;
    platform.story.advance(std::time::Duration::from_secs(20)).await;
    platform.decommission(id).await;
    let path = format!("/api/v1/billing/usage?app_instance_id={id}");
    let usage = platform.http.acting("viewer").get(&path).await.with(200);
    let items =
        usage["items"].as_array().unwrap().iter().filter(|one| one["usage_unit"] == "session_seconds");
    let session: i64 = items.map(|one| one["quantity"].as_i64().unwrap()).sum();
    assert!((40..=70).contains(&session), "counted across the restart, and once: {session}");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_decommissioned_instance_used_is_there_at_once() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let id = platform.deployed(allocation, &profile(PORT, 30), 1).await;
    platform.story.advance(std::time::Duration::from_secs(30)).await;
    let run = platform.decommission(id).await;
    let path = format!("/api/v1/billing/usage?app_instance_id={id}");
    let usage = platform.http.acting("viewer").get(&path).await.with(200);
    let records: Vec<(String, i64)> = usage["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["usage_unit"].as_str().unwrap().to_owned(), one["quantity"].as_i64().unwrap()))
        .collect();
    let (session, gpu) = sums(&records);
    assert!(session >= 29 && gpu == session, "{usage:#}");
    assert_eq!(usage["items"][0]["rated"], false);
    let shown = project(&format!("/workflows/{}", run["workflow"]["id"].as_str().unwrap()));
    let steps = platform.http.get(&shown).await.with(200);
    assert_eq!(steps["steps"][1]["name"], "close_metering");
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counting_allocations_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: AccrueAllocations {},
        fresh_env: uncounted,
        leftovers: counted,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

/// Two allocations that were held from one fixed hour to the next and of which nothing was counted.
fn uncounted(engine: &Engine) -> Arc<Env> {
    wait_for(
        sqlx::raw_sql(
            "alter table usage_records disable trigger all;
             delete from usage_records; delete from open_windows; delete from meters; delete from allocations;
             insert into organizations (id, slug, display_name) values
                 ('00000000-0000-0000-0000-00000000000a', 'org', 'org') on conflict do nothing;
             insert into projects (id, org_id, slug, display_name) values
                 ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-00000000000a', 'project', 'p')
                 on conflict do nothing;
             insert into nodes (id, name, status, key_id, public_key, created_by) values
                 ('00000000-0000-0000-0000-000000000017', 'gpu-1', 'active', 'k', 'k',
                  '00000000-0000-0000-0000-000000000000') on conflict do nothing;
             insert into allocations (id, org_id, project_id, node_id, capacity_shape, sku, gpu_count, cpu_cores, memory_gib,
                 status, created_by, correlation_id, activated_at, released_at)
             select gen_random_uuid(), '00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0000-000000000001',
                 '00000000-0000-0000-0000-000000000017', 'gpu_slice', 'x', n, 1, 1, 'released',
                 '00000000-0000-0000-0000-000000000000', 'c', '2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z'
             from generate_series(0, 2) n",
        )
        .execute(engine.pool().bare()),
    )
    .expect("allocations");
    Arc::new(Env::new(engine.clone()))
}

/// What was counted, by the allocation's size, and whether anything goes on.
fn counted(env: &Env) -> Vec<String> {
    wait_for(
        sqlx::query_scalar(
            "select format('%s GPUs: %s in %s windows, %s open', a.gpu_count, sum(r.quantity), count(*),
                 (select count(*) from meters where closed_at is null))
             from allocations a join usage_records r on r.allocation_id = a.id group by a.id order by a.gpu_count",
        )
        .fetch_all(env.pool().bare()),
    )
    .expect("what was counted")
}
