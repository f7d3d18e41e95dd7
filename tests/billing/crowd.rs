//! Many at once: whoever tells of usage, rates it and rates it anew meets the others wherever they are, and afterwards every
//! unit is charged exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use activities::Env;
use chrono::{DateTime, TimeDelta, TimeZone, Utc};
use domain::price::{Price, Rate};
use domain::{UsageSource, Window};
use engine::{Engine, RunState, Start, Workers, Workflow};
use rand::Rng;
use serde_json::json;
use sqlx::{Executor, PgConnection};
use store::usage_records::{self, Attribution, NewRecord};
use store::{billing_ledger, open_windows, prices, rating};
use tokio::task::JoinSet;
use uuid::Uuid;
use workflows::billing::rerate::RerateUsage;
use workflows::billing::rollup::RollUpUsage;

use crate::events::order::somebody_waits;
use crate::support::slow::short_or_slow;
use crate::support::story::{Story, quick};

const PROJECTS: u128 = 2;
const INSTANCES: u128 = 3;
const UNIT: &str = "tokens";

fn moment() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 1, 15, 12, 0, 0).unwrap()
}

/// What the event of this number tells, whoever tells it.
fn record(number: u32) -> NewRecord {
    let at = u128::from(number);
    let project = Uuid::from_u128(1 + at % PROJECTS);
    let occurred_at = moment() + TimeDelta::minutes(i64::from(number % 5));
    NewRecord {
        id: Uuid::now_v7(),
        of: Attribution {
            org_id: project,
            project_id: project,
            app_instance_id: Some(Uuid::from_u128(0x100 * (1 + at % PROJECTS) + at / 7 % INSTANCES)),
            allocation_id: None,
            app_slug: Some("writer".into()),
            operating_mode: None,
            control_plane_scope: None,
            runtime_backend: None,
            control_plane_component: None,
        },
        usage_source: UsageSource::AppRuntime,
        usage_unit: UNIT.into(),
        quantity: i64::from(1 + number % 13),
        occurred_at,
        window: Window::of(occurred_at, 60),
        correlation_id: "c-crowd".into(),
        reference_id: None,
        metadata: json!({}),
        source: "/crowd".into(),
        event_id: number.to_string(),
    }
}

/// Three minor units for two, half to even, by what each instance used in the month.
fn owed(told: &BTreeSet<u32>, project: Uuid) -> i64 {
    let mut used: BTreeMap<Option<Uuid>, i64> = BTreeMap::new();
    for record in told.iter().map(|number| record(*number)).filter(|one| one.of.project_id == project) {
        *used.entry(record.of.app_instance_id).or_default() += record.quantity;
    }
    let cost = |quantity: i64| match (quantity * 3 / 2, quantity * 3 % 2) {
        (whole, 0) => whole,
        (below, _) => below + below % 2,
    };
    used.into_values().map(cost).sum()
}

async fn priced(conn: &mut PgConnection) {
    let price = Price {
        id: Uuid::now_v7(),
        version: 1,
        usage_source: UsageSource::AppRuntime,
        usage_unit: UNIT.into(),
        app_slug: None,
        sku: None,
        rate: Rate::PerUnit { amount_minor: 3, per: 2 },
        effective_from: moment() - TimeDelta::days(30),
    };
    prices::insert(conn, &price, "EUR", Uuid::nil()).await.unwrap();
}

async fn runs<W: Workflow>(story: &Story, workflow: &W) {
    let options = Start { correlation_id: "c-crowd".into(), ..Start::default() };
    let run = story.start_workflow(workflow, options).await.unwrap();
    assert_eq!(story.ends(run.id).await, RunState::Succeeded, "{}", story.describe(run.id).await);
}

/// Runs may share a transaction, which then holds windows in the order of their effects. Whoever meets such a one the wrong way
/// round is told to come again.
async fn is_taken(engine: &Engine, batch: &BTreeSet<u32>) -> bool {
    let records: Vec<NewRecord> = batch.iter().map(|number| record(*number)).collect();
    let mut tx = engine.pool().begin().await.unwrap();
    if let Err(error) = usage_records::add(&mut tx, &records).await {
        let code = error.as_database_error().and_then(|error| error.code().map(String::from));
        assert!(matches!(code.as_deref(), Some("40P01" | "55P03")), "{error}");
        return false;
    }
    tokio::task::yield_now().await;
    tx.commit().await.unwrap();
    true
}

/// Tells batches until it is stopped, some of what others tell too, and answers what it told.
async fn writes(engine: Engine, stop: Arc<AtomicBool>, round: u32) -> BTreeSet<u32> {
    let mut told = BTreeSet::new();
    while !stop.load(Relaxed) {
        let batch: BTreeSet<u32> = (0..rand::rng().random_range(1..6))
            .map(|_| 3000 * round + rand::rng().random_range(0..3000))
            .collect();
        while !is_taken(&engine, &batch).await {}
        told.extend(batch);
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn what_many_tell_while_it_is_rated_and_rated_anew_is_charged_exactly_once() {
    let story = Story::idle(quick(), None).await;
    let env = Arc::new(Env::new(story.engine.clone()));
    let workers = Workers::start(&story.engine, env, workflows::registry());
    priced(&mut story.pool.acquire().await.unwrap()).await;
    let rerate =
        RerateUsage { usage_source: UsageSource::AppRuntime, usage_unit: UNIT.into(), from: moment() };
    let mut told = BTreeSet::new();
    for round in 0..short_or_slow(4, 60) {
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = JoinSet::new();
        for _ in 0..4 {
            writers.spawn(writes(story.engine.clone(), Arc::clone(&stop), round));
        }
        for _ in 0..3 {
            tokio::join!(runs(&story, &RollUpUsage {}), runs(&story, &RollUpUsage {}), runs(&story, &rerate));
        }
        stop.store(true, Relaxed);
        told.extend(writers.join_all().await.into_iter().flatten());
        runs(&story, &RollUpUsage {}).await;
        for project in (1..=PROJECTS).map(Uuid::from_u128) {
            let mut conn = story.pool.acquire().await.unwrap();
            let head = billing_ledger::prove(&mut conn, project).await.unwrap();
            assert_eq!(head.balance_minor, -owed(&told, project), "round {round}");
        }
        let left: i64 = sqlx::query_scalar(
            "select (select count(*) from open_windows) + (select count(*) from unrated_projects)",
        )
        .fetch_one(&story.pool)
        .await
        .unwrap();
        assert_eq!(left, 0, "round {round}: nothing waits, and nobody is set aside");
    }
    workers.stop().await;
    story.end().await;
}

/// A window that was rated, in which the same instance has used more by now.
async fn reopened(story: &Story) {
    let mut tx = story.pool.begin().await.unwrap();
    priced(&mut tx).await;
    usage_records::add(&mut tx, &[record(0)]).await.unwrap();
    rating::post(&mut tx, 10, "c-crowd").await.unwrap();
    usage_records::add(&mut tx, &[record(150)]).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_rates_anew_waits_for_who_rates_and_neither_for_both() {
    let story = Story::idle(quick(), None).await;
    reopened(&story).await;
    let mut rates = story.pool.begin().await.unwrap();
    assert_eq!(open_windows::due(&mut rates, 10).await.unwrap().len(), 1);
    let pool = story.pool.clone();
    let anew = tokio::spawn(async move {
        let mut tx = pool.begin().await.unwrap();
        let of = (UsageSource::AppRuntime, UNIT);
        let last = open_windows::open_again(&mut tx, of, moment(), None, 10).await.unwrap();
        tx.commit().await.unwrap();
        last
    });
    somebody_waits(&story, "open_windows").await;
    assert_eq!(rating::post(&mut rates, 10, "c-crowd").await.unwrap().set_aside, 0);
    rates.commit().await.unwrap();
    assert!(anew.await.unwrap().is_some());
    let mut conn = story.pool.acquire().await.unwrap();
    assert_eq!(open_windows::due(&mut conn, 10).await.unwrap().len(), 1, "it has its turn again");
    drop(conn);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_not_to_be_had_sets_no_project_aside() {
    let story = Story::idle(quick(), None).await;
    reopened(&story).await;
    let mut holder = story.pool.begin().await.unwrap();
    holder.execute("select from usage_windows for update").await.unwrap();
    let mut rates = story.pool.begin().await.unwrap();
    rates.execute("set local lock_timeout = '50ms'").await.unwrap();
    let refused = rating::post(&mut rates, 10, "c-crowd").await.unwrap_err();
    let code = refused.as_database_error().and_then(|error| error.code().map(String::from));
    assert_eq!(code.as_deref(), Some("55P03"), "{refused}");
    rates.rollback().await.unwrap();
    holder.rollback().await.unwrap();
    let mut again = story.pool.begin().await.unwrap();
    assert_eq!(rating::post(&mut again, 10, "c-crowd").await.unwrap().windows, 1, "and it is tried again");
    again.commit().await.unwrap();
    story.end().await;
}
