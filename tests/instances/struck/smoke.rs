//! Going to canary through the manifest's own tests survives being struck anywhere, and never leaves the instance that they
//! ran on. What it starts is struck by its own stories.

use std::sync::Arc;

use activities::Env;
use domain::VersionAction;
use domain::canary::Canary;
use engine::Engine;
use engine::testing::{Check, check_workflow_among};
use uuid::Uuid;
use workflows::instance::decommission::DecommissionInstance;
use workflows::instance::deploy::DeployInstance;
use workflows::version::PromoteVersion;

use super::catalog::furnish;
use super::instance::begin_empty;
use super::{ACCOUNT, INSTANCE, PULL};
use crate::lifecycle::{somebody, wait_for};
use crate::support::database::TestDatabase;

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_with_tests_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    let version_id: Uuid = sqlx::query_scalar("select id from app_versions where version = '1.0.0'")
        .fetch_one(&database.pool())
        .await
        .unwrap();
    let throwaway =
        DeployInstance { instance: INSTANCE, account: ACCOUNT, pull: PULL, ..DeployInstance::throwaway() };
    let check = Check {
        database: database.options.clone(),
        workflow: PromoteVersion {
            version_id,
            app_slug: "hello".into(),
            version: "1.0.0".into(),
            action: VersionAction::Canary,
            canary: Some(Canary { percent: 100, project_ids: vec![] }),
            supersede: false,
            by: somebody(),
            throwaway: Some(throwaway),
        },
        fresh_env: staged,
        leftovers,
        while_waiting: |_, _| Box::pin(async {}),
    };
    check_workflow_among(check, |others| others.with::<DeployInstance>().with::<DecommissionInstance>())
        .await;
    database.drop().await;
}

/// The version waits for its tests, which nobody ran.
fn staged(engine: &Engine) -> Arc<Env> {
    let env = begin_empty(engine);
    wait_for(
        sqlx::raw_sql(
            "delete from smoke_runs;
             update app_versions set status = 'staged', canary = null where version = '1.0.0'",
        )
        .execute(engine.pool().bare()),
    )
    .expect("a staged version");
    env
}

/// The version's status if it moved, an instance that is not gone, and whatever is held.
fn leftovers(env: &Env) -> Vec<String> {
    wait_for(
        sqlx::query_scalar(
            "select status from app_versions where version = '1.0.0' and status <> 'staged'
             union all select 'instance ' || status from app_instances where status <> 'decommissioned'
             union all select 'held ' || kind from resource_ledger group by kind, resource having sum(quantity) <> 0
             union all select 'open ' || kind from node_tasks where finished_at is null",
        )
        .fetch_all(env.pool().bare()),
    )
    .expect("what is left")
}
