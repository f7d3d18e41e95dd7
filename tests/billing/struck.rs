//! Rating, rating again and proving survive being struck anywhere: whatever happens in between, the ledger is the same.

use std::sync::Arc;

use activities::Env;
use chrono::{TimeZone, Utc};
use domain::UsageSource;
use engine::Engine;
use engine::testing::{Check, check_workflow};
use store::rating;
use workflows::billing::prove::ProveLedgers;
use workflows::billing::rerate::RerateUsage;
use workflows::billing::rollup::RollUpUsage;

use crate::lifecycle::{let_time_pass, wait_for};
use crate::support::database::TestDatabase;

#[tokio::test(flavor = "multi_thread")]
async fn rolling_up_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: RollUpUsage {},
        fresh_env: used,
        leftovers: ledger,
        while_waiting: let_time_pass,
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rating_again_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: RerateUsage {
            usage_source: UsageSource::AppRuntime,
            usage_unit: "tokens".into(),
            from: Utc.with_ymd_and_hms(2026, 1, 1, 0, 0, 0).unwrap(),
        },
        fresh_env: rated_and_repriced,
        leftovers: ledger,
        while_waiting: let_time_pass,
    })
    .await;
    let reversals: i64 = sqlx::query_scalar("select count(*) from ledger_entries where kind = 'reversal'")
        .fetch_one(&database.pool())
        .await
        .unwrap();
    assert_eq!(reversals, 6, "three windows of each project went back");
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn proving_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: ProveLedgers {},
        fresh_env: rated,
        leftovers: |_| Vec::new(),
        while_waiting: let_time_pass,
    })
    .await;
    let told: Vec<Option<serde_json::Value>> = sqlx::query_scalar(
        "select distinct output from engine.run where kind = 'billing.prove' and state = 'succeeded'",
    )
    .fetch_all(&database.pool())
    .await
    .unwrap();
    assert_eq!(told, [Some(serde_json::json!({ "ledgers": 2, "not_read": 0 }))]);
    database.drop().await;
}

/// Two projects with usage in three windows each that nobody has rated, and a price.
fn used(engine: &Engine) -> Arc<Env> {
    wait_for(
        sqlx::raw_sql(
            "alter table usage_records disable trigger all; alter table ledger_entries disable trigger all;
             alter table prices disable trigger all;
             delete from ledger_entries; delete from ledger_heads; delete from rated_series; delete from usage_hours;
             delete from usage_windows; delete from open_windows; delete from usage_records; delete from prices;
             delete from outbox; delete from unrated_projects;
             insert into prices (id, version, usage_source, usage_unit, covers, rate, currency, effective_from, created_by)
             values ('00000000-0000-0000-0000-0000000000aa', 1, 'app_runtime', 'tokens', 'service',
                 '{\"model\": \"per_unit\", \"amount_minor\": 3, \"per\": 2}', 'EUR', '2026-01-01T00:00:00Z',
                 '00000000-0000-0000-0000-000000000000');
             insert into usage_records (id, org_id, project_id, app_instance_id, app_slug, usage_source, usage_unit, quantity,
                 occurred_at, window_start, window_end, correlation_id, source, event_id)
             select gen_random_uuid(), p.id, p.id, p.id, 'writer', 'app_runtime', 'tokens', 7 + n,
                 w.start, w.start, w.start + interval '1 minute', 'c', '/s', n::text
             from generate_series(1, 9) n
             cross join (values ('00000000-0000-0000-0000-000000000001'::uuid), ('00000000-0000-0000-0000-000000000002')) p(id)
             cross join lateral (select '2026-01-01T00:00:00Z'::timestamptz + (n % 3) * interval '1 minute' as start) w;
             insert into open_windows select distinct project_id, window_start, window_end from usage_records",
        )
        .execute(engine.pool().bare()),
    )
    .expect("usage");
    Arc::new(Env::new(engine.clone()))
}

/// The same, rated and charged.
fn rated(engine: &Engine) -> Arc<Env> {
    let env = used(engine);
    wait_for(async {
        let mut tx = engine.pool().begin().await?;
        assert_eq!(rating::post(&mut tx, 500, "c-before").await?.windows, 6);
        tx.commit().await
    })
    .expect("what was rated");
    env
}

/// The same, and a cheaper price that began before all of it.
fn rated_and_repriced(engine: &Engine) -> Arc<Env> {
    let env = rated(engine);
    wait_for(
        sqlx::raw_sql(
            "insert into prices (id, version, usage_source, usage_unit, covers, rate, currency, effective_from, created_by)
             values ('00000000-0000-0000-0000-0000000000ab', 2, 'app_runtime', 'tokens', 'service',
                 '{\"model\": \"per_unit\", \"amount_minor\": 1, \"per\": 1}', 'EUR', '2026-01-01T00:00:00Z',
                 '00000000-0000-0000-0000-000000000000')",
        )
        .execute(engine.pool().bare()),
    )
    .expect("a price");
    env
}

/// The entries, the balances and what was told; hashes tell of the time, so they are left out.
fn ledger(env: &Env) -> Vec<String> {
    wait_for(
        sqlx::query_scalar(
            "select what from (
                 select 1 as place, format('%s/%s %s %s', project_id, seq, kind, amount_minor) as what from ledger_entries
                 union all select 2, format('%s: %s after %s', project_id, balance_minor, seq) from ledger_heads
                 union all select 3, format('%s %s', type, subject) from outbox) all_of_it order by place, what",
        )
        .fetch_all(env.pool().bare()),
    )
    .expect("the ledger")
}
