//! What one project does to its bill, it does to no other: whatever cannot be rated, stopped or read is set aside and told.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use domain::rating::MOST_OF_A_SERIES;
use engine::{RunState, Start};
use serde_json::{Value, json};
use uuid::Uuid;
use workflows::billing::prove::{self, ProveLedgers};
use workflows::billing::rollup::RollUpUsage;

use super::ledger::{entries, entry, priced, rolled_up};
use super::office::Office;
use crate::http::{Http, admin, project};
use crate::support::realm::{EXAMPLE, FAR_AWAY};

const GLUTTON: Uuid = Uuid::from_u128(7);

/// Two of its instances each used more than can be counted, and within the same minute another of its apps a little.
async fn gluttony(office: &Office) {
    let body = json!({
        "usage_source": "app_runtime", "usage_unit": "tokens", "app_slug": "glutton", "model": "per_unit",
        "amount_minor": 1_000_000_000, "per": 1, "currency": "EUR", "effective_from": "2020-01-01T00:00:00Z",
    });
    office.platform.http.post(&admin("/prices"), body).await.with(201);
    sqlx::raw_sql(
        "insert into usage_records (id, org_id, project_id, app_instance_id, app_slug, usage_source, usage_unit, quantity,
             occurred_at, window_start, window_end, correlation_id, source, event_id)
         select gen_random_uuid(), '00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0000-000000000007',
             gen_random_uuid(), 'glutton', 'app_runtime', 'tokens', 1000000000000, start, start, start + interval '1 minute',
             'c', '/test', n::text
         from generate_series(1, 2) n, date_trunc('hour', engine.now() - interval '2 hours') start;
         insert into usage_records (id, org_id, project_id, app_instance_id, app_slug, usage_source, usage_unit, quantity,
             occurred_at, window_start, window_end, correlation_id, source, event_id)
         select gen_random_uuid(), org_id, project_id, gen_random_uuid(), 'writer', usage_source, usage_unit, 10,
             occurred_at, window_start, window_end, 'c', source, 'a little'
         from usage_records where source = '/test' limit 1;
         insert into open_windows (project_id, window_start, window_end)
             select distinct project_id, window_start, window_end from usage_records where source = '/test'",
    )
    .execute(&office.platform.story.pool)
    .await
    .unwrap();
}

/// Runs it now, and answers what it tells of itself.
async fn told_by<W: engine::Workflow>(office: &Office, workflow: &W) -> Value {
    let options = Start { correlation_id: "c-clock".into(), ..Start::default() };
    let run = office.platform.story.start_workflow(workflow, options).await.expect("a start");
    let state = office.platform.story.settles(run.id).await;
    assert_eq!(state, RunState::Succeeded, "{}", office.platform.story.describe(run.id).await);
    sqlx::query_scalar("select output from engine.run where id = $1")
        .bind(run.id)
        .fetch_one(&office.platform.story.pool)
        .await
        .unwrap()
}

async fn set_aside(office: &Office) -> Vec<(Uuid, i32)> {
    sqlx::query_as("select project_id, tries from unrated_projects")
        .fetch_all(&office.platform.story.pool)
        .await
        .unwrap()
}

async fn owed_by_the_glutton(office: &Office) -> i64 {
    sqlx::query_scalar("select -balance_minor from ledger_heads where project_id = $1")
        .bind(GLUTTON)
        .fetch_one(&office.platform.story.pool)
        .await
        .unwrap()
}

/// Whoever seals the ledger of a project behind the platform's back keeps it from being charged, and nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_project_whose_ledger_cannot_go_on_is_set_aside_and_everybody_else_is_charged() {
    let office = Office::open().await;
    priced(&office).await;
    gluttony(&office).await;
    sqlx::query("insert into ledger_heads (project_id, org_id, seq, balance_minor) values ($1, $1, 1, $2)")
        .bind(GLUTTON)
        .bind(i64::MIN)
        .execute(&office.platform.story.pool)
        .await
        .unwrap();
    office.tell(&[office.event("a", 10).await]).await.with(200);
    office.later(61).await;
    let told = told_by(&office, &RollUpUsage {}).await;
    assert_eq!((&told["entries"], &told["projects_set_aside"]), (&json!(1), &json!(1)), "{told:#}");
    assert_eq!(entries(&office).await, [entry("charge", -15)]);
    assert_eq!(set_aside(&office).await, [(GLUTTON, 1)]);
    let page = crate::watch::scraped(&office.platform.http).await;
    assert!(page.contains("gpuaas_rollup_windows_due 0.0"), "its windows are told apart: {page}");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_counted_is_set_aside_and_all_else_is_charged() {
    let office = Office::open().await;
    priced(&office).await;
    gluttony(&office).await;
    office.tell(&[office.event("a", 10).await]).await.with(200);
    office.later(61).await;
    let told = told_by(&office, &RollUpUsage {}).await;
    assert_eq!((&told["entries"], &told["projects_set_aside"]), (&json!(2), &json!(1)), "{told:#}");
    assert_eq!(entries(&office).await, [entry("charge", -15)]);
    assert_eq!(owed_by_the_glutton(&office).await, 15, "what can be counted of it is charged");
    assert_eq!(set_aside(&office).await, [(GLUTTON, 1)]);
    let page = crate::watch::scraped(&office.platform.http).await;
    assert!(page.contains("gpuaas_rollup_projects_set_aside 1.0"), "{page}");
    assert!(page.contains("gpuaas_rollup_windows_due 0.0"), "its windows are told apart: {page}");
    let told = told_by(&office, &RollUpUsage {}).await;
    assert_eq!(told["projects_set_aside"], 0, "it is not tried again at once");
    office.tell(&[office.event("b", 10).await]).await.with(200);
    rolled_up(&office).await;
    assert_eq!(entries(&office).await.len(), 2, "everybody else goes on");
    assert_eq!(set_aside(&office).await, [(GLUTTON, 2)], "and it has its turn now and then");
    // Once it can be counted, it is.
    let body = json!({
        "usage_source": "app_runtime", "usage_unit": "tokens", "app_slug": "glutton", "model": "per_unit",
        "amount_minor": 1, "per": 1_000_000, "currency": "EUR", "effective_from": "2020-01-01T00:00:00Z",
    });
    office.platform.http.post(&admin("/prices"), body).await.with(201);
    office.later(3600).await;
    office.run(&RollUpUsage {}).await;
    assert_eq!(set_aside(&office).await, []);
    assert_eq!(owed_by_the_glutton(&office).await, 2_000_015);
    let told = told_by(&office, &RollUpUsage {}).await;
    assert_eq!(told["windows"], 0, "nothing of it is open any more: {told:#}");
    office.run(&ProveLedgers {}).await;
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_would_cost_more_than_anybody_can_count_is_rejected_with_its_reason() {
    let office = Office::open().await;
    let body = json!({
        "usage_source": "app_runtime", "usage_unit": "tokens", "model": "per_unit", "amount_minor": 1_000_000, "per": 1,
        "currency": "EUR", "effective_from": "2020-01-01T00:00:00Z",
    });
    office.platform.http.post(&admin("/prices"), body).await.with(201);
    let most = MOST_OF_A_SERIES / 1000 / 1_000_000;
    let events = [office.event("a", most).await, office.event("b", most + 1).await];
    assert_eq!(office.verdicts(&events).await, ["accepted", "rejected too_much"]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_stopped_now_is_noted_and_keeps_nobody_from_being_charged() {
    let office = Office::open().await;
    priced(&office).await;
    let other = Uuid::now_v7();
    office.settle(other, "writer").await;
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "create function refuse_to_go() returns trigger language plpgsql as $$ begin raise exception 'no room'; end $$;
         create trigger stays before update on app_instances for each row when (old.id = '{}')
             execute function refuse_to_go()",
        office.instance
    )))
    .execute(&office.platform.story.pool)
    .await
    .unwrap();
    let budget = json!({ "amount_minor": 10, "action": "stop", "mode": "enforce" });
    office.platform.http.acting("project-admin").put(&project("/budget"), budget).await.with(200);
    office.tell(&[office.event("a", 100).await]).await.with(200);
    office.later(61).await;
    let told = told_by(&office, &RollUpUsage {}).await;
    assert_eq!((&told["stopped"], &told["not_stopped"]), (&json!(1), &json!(1)), "{told:#}");
    let path = project(&format!("/app-instances/{other}"));
    assert_eq!(office.platform.http.get(&path).await.with(200)["status"], "decommissioning");
    sqlx::raw_sql("drop trigger stays on app_instances").execute(&office.platform.story.pool).await.unwrap();
    let told = told_by(&office, &RollUpUsage {}).await;
    assert_eq!((&told["stopped"], &told["not_stopped"]), (&json!(1), &json!(0)), "the next asks again");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_cannot_be_read_is_not_said_to_be_broken() {
    let office = Office::open().await;
    for project in [EXAMPLE, FAR_AWAY] {
        let body = json!({ "amount_minor": 5, "currency": "EUR" });
        office.platform.http.post(&admin(&format!("/projects/{project}/credits")), body).await.with(201);
    }
    let mut holder = office.platform.story.pool.begin().await.unwrap();
    sqlx::raw_sql("lock table usage_windows in access exclusive mode").execute(&mut *holder).await.unwrap();
    let told = told_by(&office, &ProveLedgers {}).await;
    assert_eq!(told, json!({ "ledgers": 0, "not_read": 2 }));
    holder.rollback().await.unwrap();
    let told = told_by(&office, &ProveLedgers {}).await;
    assert_eq!(told, json!({ "ledgers": 2, "not_read": 0 }));
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_cannot_be_read_is_measured() {
    let office = Office::open().await;
    let (http, story) = (&office.platform.http, &office.platform.story);
    let body = json!({ "amount_minor": 5, "currency": "EUR" });
    http.post(&admin(&format!("/projects/{EXAMPLE}/credits")), body).await.with(201);
    let mut conn = story.pool.acquire().await.unwrap();
    story.engine.ensure_schedule(&mut conn, &prove::NIGHTLY, &ProveLedgers {}).await.unwrap();
    drop(conn);
    let mut holder = story.pool.begin().await.unwrap();
    sqlx::raw_sql("lock table usage_windows in access exclusive mode").execute(&mut *holder).await.unwrap();
    let started = http.post(&admin("/schedules/ledger_proof/run"), json!({})).await.with(202);
    let state = story.settles(started["id"].as_str().unwrap().parse().unwrap()).await;
    assert_eq!(state, RunState::Succeeded, "which is no alarm by itself");
    holder.rollback().await.unwrap();
    let page = crate::watch::scraped(http).await;
    assert!(page.contains("gpuaas_ledgers_not_read 1.0"), "{page}");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_reads_a_bill_too_slowly_holds_up_nobody_elses() {
    let office = Office::open().await;
    let bill = |of: Uuid| {
        Request::builder()
            .method(Method::GET)
            .uri(format!("/api/v1/billing/bill?project_id={of}"))
            .body(Body::empty())
            .unwrap()
    };
    let whole = async |http: Http, of: Uuid| -> Value {
        let answer = http.open(bill(of)).await;
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.expect("all of it");
        serde_json::from_slice(&bytes).expect("a whole bill")
    };
    // It has several pieces, and nobody takes them.
    let slow = office.platform.http.open(bill(EXAMPLE)).await;
    assert_eq!(slow.status(), 200);
    let others = (0..3).map(|_| whole(office.platform.http.clone(), EXAMPLE));
    let quick = tokio::time::timeout(Duration::from_secs(5), whole(office.platform.http.clone(), FAR_AWAY));
    let (quick, others) = tokio::join!(quick, futures::future::join_all(others));
    assert_eq!(quick.expect("nobody else waits")["entries"], json!([]));
    // The slow one is cut off in time, and the next of the same project have their turns.
    assert_eq!(others.len(), 3);
    assert!(to_bytes(slow.into_body(), usize::MAX).await.is_err(), "what broke off says so");
    office.close().await;
}
