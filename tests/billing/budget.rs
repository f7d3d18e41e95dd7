//! Budgets: simulated first, then they refuse what is new or end what runs.

use serde_json::{Value, json};
use uuid::Uuid;

use super::ledger::{priced, rolled_up};
use super::office::Office;
use crate::http::{admin, project};
use crate::support::docker::PORT;
use crate::support::platform::profile;

async fn set(office: &Office, action: &str, mode: &str, amount: i64) -> Value {
    let body = json!({ "amount_minor": amount, "action": action, "mode": mode });
    office.platform.http.acting("project-admin").put(&project("/budget"), body).await.with(200)
}

async fn spend(office: &Office, id: &str) {
    office.tell(&[office.event(id, 100).await]).await.with(200);
    rolled_up(office).await;
}

/// What was told of budgets that are spent.
async fn told(office: &Office) -> Vec<Value> {
    sqlx::query_scalar("select data from outbox where type = 'billing.budget_exceeded' order by pos")
        .fetch_all(&office.platform.story.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_tells_what_an_hour_would_cost() {
    let office = Office::open().await;
    let number = office.platform.version(&profile(PORT, 30)).await;
    let wish = json!({ "app_slug": "hello", "version": number, "display_name": "hello", "resources": { "gpu_count": 1 } });
    let operator = office.platform.http.acting("operator");
    let plan = operator.post(&project("/app-instances/plan"), wish.clone()).await.with(200);
    assert_eq!(plan["price_per_hour"], json!(null), "nothing has a price yet");
    for (source, unit, amount) in [
        ("app_runtime", "session_seconds", 36),
        ("app_runtime", "gpu_seconds", 720),
        ("allocation", "allocation_seconds", 3600),
    ] {
        let body = json!({
            "usage_source": source, "usage_unit": unit, "model": "per_unit", "amount_minor": amount, "per": 3600,
            "currency": "EUR", "effective_from": "2020-01-01T00:00:00Z",
            "covers": if source == "allocation" { "capacity" } else { "service" },
        });
        office.platform.http.post(&admin("/prices"), body).await.with(201);
    }
    let plan = operator.post(&project("/app-instances/plan"), wish).await.with(200);
    let price = &plan["price_per_hour"];
    assert_eq!((&price["currency"], &price["amount_minor"]), (&json!("EUR"), &json!(756)), "{price:#}");
    assert_eq!(price["allocation_amount_minor"], 3600);
    let path = project(&format!("/app-instances/{}/plan", office.instance));
    let ends = operator.post(&path, json!({ "action": "decommission" })).await.with(200);
    assert_eq!(ends["price_per_hour"], json!(null), "what ends costs nothing");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_budget_denies_what_is_new_once_it_is_enforced() {
    let office = Office::open().await;
    priced(&office).await;
    let number = office.platform.version(&profile(PORT, 30)).await;
    let body = json!({ "app_slug": "hello", "version": number, "display_name": "hello" });
    let before = office.platform.http.acting("viewer").get(&project("/budget")).await.with(200);
    assert_eq!((&before["amount_minor"], &before["is_exceeded"]), (&json!(null), &json!(false)));
    set(&office, "deny_new", "simulate", 100).await;
    spend(&office, "a").await;
    let simulated = office.platform.http.acting("viewer").get(&project("/budget")).await.with(200);
    assert_eq!((&simulated["spent_minor"], &simulated["would"]["deny_new"]), (&json!(150), &json!(true)));
    office.platform.create(body.clone()).await.with(202);
    set(&office, "deny_new", "enforce", 100).await;
    let denied = office.platform.create(body.clone()).await.with(403);
    assert_eq!(
        (&denied["code"], &denied["details"]["reason"]),
        (&json!("policy_denied"), &json!("budget_exceeded"))
    );
    set(&office, "deny_new", "enforce", 1000).await;
    office.platform.create(body).await.with(202);
    assert_eq!(told(&office).await.len(), 1);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_that_is_spent_when_it_is_set_is_told_before_it_stops_anything() {
    let office = Office::open().await;
    priced(&office).await;
    set(&office, "stop", "enforce", 100).await;
    assert!(told(&office).await.is_empty(), "nothing was spent yet");
    set(&office, "stop", "enforce", 1000).await;
    spend(&office, "a").await;
    assert!(told(&office).await.is_empty());
    for _ in 0..2 {
        set(&office, "stop", "enforce", 100).await;
        let told = told(&office).await;
        assert_eq!(told.len(), 1, "once: {told:?}");
        assert_eq!(
            (&told[0]["spent_minor"], &told[0]["budget_minor"], &told[0]["action"], &told[0]["mode"]),
            (&json!(150), &json!(100), &json!("stop"), &json!("enforce"))
        );
        assert_eq!(told[0]["currency"], "EUR");
    }
    // Nothing is posted, and everything stops.
    rolled_up(&office).await;
    let path = project(&format!("/app-instances/{}", office.instance));
    assert_eq!(office.platform.http.get(&path).await.with(200)["status"], "decommissioning");
    assert_eq!(told(&office).await.len(), 1);
    set(&office, "warn", "simulate", 1000).await;
    set(&office, "warn", "simulate", 100).await;
    assert_eq!(told(&office).await.len(), 2, "what was not so in between is told again");
    office.close().await;
}

/// Trying again is no way around it.
#[tokio::test(flavor = "multi_thread")]
async fn a_spent_budget_denies_another_try_of_what_never_ran() {
    let office = Office::open().await;
    priced(&office).await;
    let number = office.platform.version(&profile(PORT, 30)).await;
    assert_eq!(number, "1.0.0", "which is what instances of the office have");
    let id = Uuid::now_v7();
    office.settle(id, "hello").await;
    let pool = &office.platform.story.pool;
    sqlx::query("update app_instances set status = 'failed', failed_during = 'deploying' where id = $1")
        .bind(id)
        .execute(pool)
        .await
        .unwrap();
    spend(&office, "a").await;
    set(&office, "deny_new", "enforce", 100).await;
    let path = project(&format!("/app-instances/{id}/retry"));
    let operator = office.platform.http.acting("operator");
    let denied = operator.post(&path, json!({})).await.with(403);
    assert_eq!(
        (&denied["code"], &denied["details"]["reason"]),
        (&json!("policy_denied"), &json!("budget_exceeded"))
    );
    // It came to serve long ago, before what is told is looked for.
    sqlx::query("update app_instances set activated_at = engine.now() - interval '2 days' where id = $1")
        .bind(id)
        .execute(pool)
        .await
        .unwrap();
    operator.post(&path, json!({})).await.with(202);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_budget_that_stops_decommissions_what_runs() {
    let office = Office::open().await;
    priced(&office).await;
    let would = set(&office, "stop", "simulate", 100).await;
    assert_eq!(would["would"]["stop"], json!([]));
    spend(&office, "a").await;
    let path = project(&format!("/app-instances/{}", office.instance));
    let http = &office.platform.http;
    assert_eq!(http.get(&path).await.with(200)["status"], "running", "only simulated");
    let would = set(&office, "stop", "enforce", 100).await;
    assert_eq!(would["would"]["stop"], json!([office.instance]));
    rolled_up(&office).await;
    assert_eq!(http.get(&path).await.with(200)["status"], "decommissioning");
    office.close().await;
}
