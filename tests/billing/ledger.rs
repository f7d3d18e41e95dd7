//! What is used is charged once, corrections are entries of their own, and what was written stays.

use chrono::TimeDelta;
use engine::{RunState, Start};
use serde_json::{Value, json};
use workflows::billing::accrue::AccrueAllocations;
use workflows::billing::prove::ProveLedgers;
use workflows::billing::rollup::RollUpUsage;

use super::office::Office;
use crate::http::admin;
use crate::support::realm::{EXAMPLE, FAR_AWAY};

/// Tokens cost one and a half minor units each.
pub async fn priced(office: &Office) {
    let body = json!({
        "usage_source": "app_runtime", "usage_unit": "tokens", "model": "per_unit", "amount_minor": 3, "per": 2,
        "currency": "EUR", "effective_from": "2020-01-01T00:00:00Z",
    });
    office.platform.http.post(&admin("/prices"), body).await.with(201);
}

pub async fn rolled_up(office: &Office) {
    office.later(61).await;
    office.run(&RollUpUsage {}).await;
}

async fn read(office: &Office, what: &str) -> Value {
    let path = format!("/api/v1/billing/{what}project_id={EXAMPLE}");
    office.platform.http.acting("viewer").get(&path).await.with(200)
}

pub async fn entries(office: &Office) -> Vec<(String, i64)> {
    let ledger = read(office, "ledger?").await;
    let items = ledger["items"].as_array().unwrap().iter();
    items
        .map(|one| (one["kind"].as_str().unwrap().to_owned(), one["amount_minor"].as_i64().unwrap()))
        .collect()
}

pub fn entry(kind: &str, amount: i64) -> (String, i64) {
    (kind.to_owned(), amount)
}

async fn told(office: &Office, kind: &str) -> i64 {
    sqlx::query_scalar("select count(*) from outbox where type = $1")
        .bind(kind)
        .fetch_one(&office.platform.story.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_comes_in_is_an_entry_and_ends_a_low_balance() {
    let office = Office::open().await;
    priced(&office).await;
    office.tell(&[office.event("a", 10).await]).await.with(200);
    rolled_up(&office).await;
    assert_eq!(
        (entries(&office).await, told(&office, "billing.low_balance").await),
        (vec![entry("charge", -15)], 1)
    );
    let path = admin(&format!("/projects/{EXAMPLE}/credits"));
    let of = |amount: i64, currency: &str| json!({ "amount_minor": amount, "currency": currency, "reason": "paid" });
    office.platform.http.acting("project-admin").post(&path, of(10_000, "EUR")).await.with(403);
    office.platform.http.post(&path, of(10_000, "USD")).await.with(409);
    for wrong in [0, -5] {
        office.platform.http.post(&path, of(wrong, "EUR")).await.with(400);
    }
    office.platform.http.post(&admin("/projects/nobody/credits"), of(1, "EUR")).await.with(404);
    let headers = [("x-idempotency-key", "invoice-17")];
    for _ in 0..2 {
        let posted = office
            .platform
            .http
            .send(axum::http::Method::POST, &path, &headers, Some(of(10_000, "EUR")))
            .await;
        let posted = posted.with(201);
        assert_eq!(
            (&posted["kind"], &posted["seq"]),
            (&json!("credit"), &json!(2)),
            "the same invoice is paid once"
        );
    }
    assert_eq!(entries(&office).await, [entry("charge", -15), entry("credit", 10_000)]);
    let balance = read(&office, "balance?").await;
    assert_eq!((&balance["balance_minor"], &balance["is_low"]), (&json!(9_985), &json!(false)));
    assert_eq!(told(&office, "billing.ledger_posted").await, 2);
    assert_eq!(told(&office, "billing.low_balance").await, 1);
    // Low once more is told once more, and only once.
    for id in ["b", "c"] {
        office.tell(&[office.event(id, 10_000).await]).await.with(200);
        rolled_up(&office).await;
        assert_eq!(told(&office, "billing.low_balance").await, 2, "{id}");
    }
    office.run(&ProveLedgers {}).await;
    let audited: i64 = sqlx::query_scalar(
        "select count(*) from audit where action = 'create_credit' and result = 'succeeded'",
    )
    .fetch_one(&office.platform.story.pool)
    .await
    .unwrap();
    assert_eq!(audited, 1);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_is_charged_once_and_what_comes_late_is_corrected() {
    let office = Office::open().await;
    priced(&office).await;
    let now = office.now().await;
    office.tell(&[office.event_at("a", 10, now), office.event_at("b", 5, now)]).await.with(200);
    office.run(&RollUpUsage {}).await;
    assert_eq!(entries(&office).await, [], "a window that is not over is not charged");
    assert_eq!(office.usage("&window=hour").await["items"][0]["rated"], false);
    rolled_up(&office).await;
    assert_eq!(entries(&office).await, [entry("charge", -22)], "22.5 goes to the even");
    rolled_up(&office).await;
    assert_eq!(entries(&office).await.len(), 1, "rolled up twice is charged once");
    let sum = &office.usage("&window=hour").await["items"][0];
    assert_eq!(
        (&sum["amount_minor"], &sum["rated"], &sum["currency"]),
        (&json!(22), &json!(true), &json!("EUR"))
    );
    assert_eq!(office.usage("").await["items"][0]["rated"], true);
    let late = office.event_at("c", 1, now - TimeDelta::seconds(1));
    let same = office.event_at("d", 1, now);
    office.tell(&[late, same]).await.with(200);
    assert_eq!(office.usage("&window=month").await["items"][0]["quantities"]["tokens"], 17, "read at once");
    rolled_up(&office).await;
    let all = entries(&office).await;
    assert_eq!(all[0], entry("charge", -22));
    assert!(all.contains(&entry("reversal", 22)), "{all:?}");
    assert_eq!(all.iter().map(|(_, amount)| amount).sum::<i64>(), -26, "17 cost 25.5");
    let balance = read(&office, "balance?").await;
    assert_eq!(balance["balance_minor"], -26);
    assert_eq!(balance["entries"].as_u64().unwrap() as usize, all.len());
    assert_eq!(told(&office, "billing.ledger_posted").await, 2);
    assert_eq!(told(&office, "billing.low_balance").await, 1, "told when it becomes so, not every time");
    office.run(&ProveLedgers {}).await;
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_of_the_past_is_applied_by_reversing_entries_and_only_when_asked() {
    let office = Office::open().await;
    priced(&office).await;
    office.tell(&[office.event("a", 100).await]).await.with(200);
    rolled_up(&office).await;
    let mut body = json!({
        "usage_source": "app_runtime", "usage_unit": "tokens", "app_slug": "writer", "model": "tiered", "per": 1,
        "tiers": [{ "up_to": 10, "amount_minor": 2 }, { "amount_minor": 1 }], "currency": "EUR",
        "effective_from": "2020-01-01T00:00:00Z",
    });
    let http = &office.platform.http;
    let made = http.post(&admin("/prices"), body.clone()).await.with(201);
    assert_eq!((&made["version"], made.get("workflow")), (&json!(1), None));
    rolled_up(&office).await;
    assert_eq!(entries(&office).await, [entry("charge", -150)]);
    let late = office.event_at("late", 1, office.now().await - TimeDelta::seconds(122));
    office.tell(&[late]).await.with(200);
    rolled_up(&office).await;
    let all = entries(&office).await;
    assert_eq!(all[1..], [entry("reversal", 150), entry("charge", -152)], "nobody asked: it keeps its price");
    body["rerate"] = json!(true);
    let made = http.post(&admin("/prices"), body.clone()).await.with(201);
    assert_eq!(made["version"], 2);
    let run = made["workflow"]["id"].as_str().unwrap().parse().unwrap();
    office.platform.succeeds(run).await;
    let all = entries(&office).await;
    assert_eq!(all[3..], [entry("reversal", 152), entry("charge", -111)]);
    let ledger = read(&office, "ledger?limit=4&").await;
    assert_eq!(ledger["prices"].as_array().unwrap().len(), 1, "of the page's entries: {ledger:#}");
    let next = ledger["next_cursor"].as_str().unwrap();
    let last = read(&office, &format!("ledger?limit=4&cursor={next}&")).await;
    assert_eq!((&last["items"][0]["seq"], &last["items"][0]["price_version"]), (&json!(5), &json!(2)));
    body["currency"] = json!("USD");
    let other = http.post(&admin("/prices"), body).await.with(400);
    assert_eq!(other["details"]["errors"][0]["pointer"], "/currency");
    office.run(&ProveLedgers {}).await;
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_money_decides_the_currency_of_every_ledger_and_price() {
    let office = Office::open().await;
    let http = &office.platform.http;
    let credit = |currency: &str| json!({ "amount_minor": 5, "currency": currency });
    http.post(&admin(&format!("/projects/{EXAMPLE}/credits")), credit("USD")).await.with(201);
    let body = |currency: &str| {
        json!({
            "usage_source": "app_runtime", "usage_unit": "tokens", "model": "flat", "amount_minor": 1,
            "currency": currency,
        })
    };
    let refused = http.post(&admin("/prices"), body("EUR")).await.with(400);
    assert_eq!(refused["details"]["errors"][0]["pointer"], "/currency");
    let other = http.post(&admin(&format!("/projects/{FAR_AWAY}/credits")), credit("EUR")).await.with(409);
    assert_eq!(other["details"]["currency"], "USD");
    http.post(&admin("/prices"), body("USD")).await.with(201);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_ledger_is_proven_and_every_broken_one_is_named() {
    let office = Office::open().await;
    let http = &office.platform.http;
    for project in [EXAMPLE, FAR_AWAY] {
        let body = json!({ "amount_minor": 5, "currency": "EUR" });
        http.post(&admin(&format!("/projects/{project}/credits")), body).await.with(201);
    }
    sqlx::query("update ledger_heads set balance_minor = 7")
        .execute(&office.platform.story.pool)
        .await
        .unwrap();
    let options = Start { correlation_id: "c-clock".into(), ..Start::default() };
    let run = office.platform.story.start_workflow(&ProveLedgers {}, options).await.expect("a start");
    assert_ne!(office.platform.story.ends(run.id).await, RunState::Succeeded);
    let said = office.platform.story.describe(run.id).await;
    for project in [EXAMPLE, FAR_AWAY] {
        assert!(said.contains(&project.to_string()), "{project} is not named: {said}");
    }
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_cannot_charge_for_the_seconds_of_an_allocation_again() {
    let office = Office::open().await;
    let body = json!({
        "usage_source": "app_runtime", "usage_unit": "gpu_seconds", "covers": "capacity", "model": "flat",
        "amount_minor": 1, "currency": "EUR",
    });
    let refused = office.platform.http.post(&admin("/prices"), body).await.with(400);
    assert_eq!(refused["details"]["errors"][0]["pointer"], "/covers");
    let of = |source: &str, unit: &str| {
        json!({
            "usage_source": source, "usage_unit": unit, "model": "per_unit", "amount_minor": 1, "per": 1, "currency": "EUR",
            "effective_from": "2020-01-01T00:00:00Z",
        })
    };
    let http = &office.platform.http;
    http.post(&admin("/prices"), of("allocation", "allocation_seconds")).await.with(201);
    for unit in ["session_seconds", "gpu_seconds"] {
        let refused = http.post(&admin("/prices"), of("app_runtime", unit)).await.with(400);
        assert_eq!(
            refused["details"]["errors"][0]["pointer"], "/covers",
            "{unit}: it must be said what it is for"
        );
    }
    // An instance runs on the allocation: its seconds are counted, and paid for once.
    let charged = async || -> Vec<String> {
        office.later(30).await;
        office.beat(true).await;
        office.later(30).await;
        office.beat(true).await;
        office.run(&AccrueAllocations {}).await;
        rolled_up(&office).await;
        let ledger = read(&office, "ledger?limit=200&").await;
        let units = ledger["items"].as_array().unwrap().iter();
        let mut units: Vec<String> =
            units.map(|one| one["usage_unit"].as_str().unwrap().to_owned()).collect();
        units.sort();
        units.dedup();
        units
    };
    let mut conn = office.platform.story.pool.acquire().await.unwrap();
    store::meters::open(&mut conn, office.instance, "c-meter").await.unwrap();
    drop(conn);
    assert_eq!(charged().await, ["allocation_seconds"]);
    let counted = office.records("&usage_source=app_runtime&limit=200").await;
    assert!(counted.iter().any(|(unit, _)| unit == "gpu_seconds"), "{counted:?}");
    let mut service = of("app_runtime", "gpu_seconds");
    service["covers"] = json!("service");
    service["rerate"] = json!(true);
    let made = http.post(&admin("/prices"), service).await.with(201);
    office.platform.succeeds(made["workflow"]["id"].as_str().unwrap().parse().unwrap()).await;
    assert_eq!(charged().await, ["allocation_seconds", "gpu_seconds"], "a service on top, where it is said");
    let direct = sqlx::query(
        "insert into prices (id, version, usage_source, usage_unit, covers, rate, currency, effective_from, created_by)
         values (gen_random_uuid(), 1, 'app_runtime', 'gpu_seconds', 'capacity', '{}', 'EUR', now(), gen_random_uuid())",
    )
    .execute(&office.platform.story.pool)
    .await;
    assert!(direct.is_err(), "the database refuses it too");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_who_serves_can_change_or_take_away_what_was_written() {
    let office = Office::open().await;
    priced(&office).await;
    office.tell(&[office.event("a", 100).await]).await.with(200);
    rolled_up(&office).await;
    let pool = &office.platform.story.pool;
    for table in ["ledger_entries", "usage_records", "prices"] {
        for statement in ["update % set org_id = org_id", "delete from %", "truncate % cascade"] {
            let column = if table == "prices" { "currency" } else { "org_id" };
            let statement = statement.replace('%', table).replace("org_id", column);
            for role in ["gpuaas_app", "none"] {
                let mut tx = pool.begin().await.unwrap();
                sqlx::raw_sql(sqlx::AssertSqlSafe(format!("set local role {role}")))
                    .execute(&mut *tx)
                    .await
                    .unwrap();
                let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(statement.clone())).execute(&mut *tx).await;
                let error = refused.expect_err(&format!("{role}: {statement}"));
                let code =
                    error.as_database_error().and_then(|error| error.code()).unwrap_or_default().into_owned();
                assert_eq!(code, "42501", "{role}: {statement}: {error}");
            }
        }
    }
    office.close().await;
}
