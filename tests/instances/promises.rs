//! The checker of what the platform promises beside its runs can fail: each promise is broken once, in a transaction that
//! does not last.

use agent::Simulated;
use engine::RunState;
use store::promises;
use uuid::Uuid;

use crate::http::project;
use crate::support::docker::PORT;
use crate::support::platform::{Platform, profile};

const TAKE: &str = "insert into resource_ledger
    (id, org_id, project_id, instance_id, kind, resource, quantity, run_id, correlation_id)
    select gen_random_uuid(), org_id, project_id, id, 'port', 'node:x:1', %, gen_random_uuid(), 'c' from app_instances where id = ";

#[tokio::test(flavor = "multi_thread")]
async fn every_promise_of_the_platform_can_be_found_broken() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let (one, run) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    assert_eq!(platform.story.ends(run).await, RunState::Succeeded);
    let (other, second) = platform.deploy(allocation, &profile(PORT, 30), 1).await;
    assert_eq!(platform.story.ends(second).await, RunState::Succeeded);
    // Two healthy instances on one node break nothing.
    platform.story.check().await;

    let take =
        |instance: Uuid, quantity: i32| format!("{}'{instance}'", TAKE.replace('%', &quantity.to_string()));
    let gpu = |instance: Uuid| take(instance, 1).replace("'port', 'node:x:1'", "'gpu', 'allocation:x:gpu:0'");
    let act = format!(
        "insert into engine.act (id, run_id, act, actor, correlation_id)
         select gen_random_uuid(), '{run}', 'pause', id::text, 'never audited' from users limit 1"
    );
    let scheduled = Uuid::now_v7();
    let schedule = format!(
        "insert into engine.act (id, schedule, act, actor, correlation_id)
         select '{scheduled}', 'rollup', 'pause', id::text, 'never audited' from users limit 1"
    );
    let told_again = format!(
        "insert into outbox (id, project_id, org_id, type, subject, data, correlation_id)
         select gen_random_uuid(), project_id, org_id, type, subject, data, correlation_id from outbox
         where subject = '{one}' and type = 'apps.instance.requested'"
    );
    let one_id = async |sql: &'static str| -> Uuid {
        sqlx::query_scalar(sql).fetch_one(&platform.story.pool).await.unwrap()
    };
    let version = one_id("select id from app_versions where status = 'active' order by id limit 1").await;
    let node = one_id("select id from nodes limit 1").await;
    for (promise, subject, broken_by) in [
        ("P4", one, take(one, -1)),
        ("P4", one, take(one, 2)),
        ("P4", one.min(other), format!("{}; {}", take(one, 1), take(other, 1))),
        ("P4", one.min(other), format!("{}; {}", gpu(one), gpu(other))),
        ("P8", one, format!("update app_instances set status = 'decommissioned' where id = '{one}'")),
        ("P8", one, format!("update engine.run set state = 'compensated' where id = '{run}'")),
        ("P9", one, format!("delete from outbox where subject = '{one}'")),
        ("P9", one, format!("update app_instances set status = 'upgrading' where id = '{one}'")),
        ("P9", one, told_again),
        (
            "P9",
            version,
            format!("update app_versions set status = 'retired', canary = null where id = '{version}'"),
        ),
        ("P10", run, act),
        ("P10", scheduled, schedule),
        ("P10", one, "delete from audit".into()),
        ("P10", version, "delete from audit".into()),
        ("P10", node, format!("delete from audit where target = 'node:{node}'")),
        ("P10", allocation, "delete from audit where target like 'allocation:%'".into()),
    ] {
        let mut tx = platform.story.pool.begin().await.unwrap();
        sqlx::raw_sql("set local session_replication_role = replica").execute(&mut *tx).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(broken_by.clone())).execute(&mut *tx).await.unwrap();
        let found = promises::check(&mut tx, None).await.unwrap();
        assert!(
            found.iter().any(|one| one.promise == promise && one.subject == subject),
            "{broken_by}: {found:#?}"
        );
        tx.rollback().await.unwrap();
    }
    platform.http.get(&project("/app-instances")).await.with(200);
    agent.end().await;
    platform.end().await;
}
