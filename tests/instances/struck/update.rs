//! Updating a node's agent survives being struck anywhere: the node is asked once, or not at all.

use activities::Env;
use activities::order_update::OrderUpdate;
use engine::testing::{Check, check_workflow};
use workflows::node::UpdateAgent;

use super::catalog::furnish;
use super::instance::begin_empty;
use super::{NODE, VERSIONS};
use crate::lifecycle::wait_for;
use crate::support::database::TestDatabase;
use crate::support::image::digest;

#[tokio::test(flavor = "multi_thread")]
async fn updating_an_agent_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    let order = OrderUpdate {
        node_id: NODE,
        artifact_id: VERSIONS[0].1,
        version: "1.2.0".into(),
        artifact: "gpuaas-linux-x86_64".into(),
        digest: digest(b"a program"),
        size_bytes: 9,
    };
    check_workflow(Check {
        database: database.options.clone(),
        workflow: UpdateAgent { order },
        fresh_env: begin_empty,
        leftovers: nobody_took,
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    database.drop().await;
}

/// What a run that is over must not leave for a node to find.
fn nobody_took(env: &Env) -> Vec<String> {
    let all = "select 'for nobody: ' || kind from node_tasks where status = 'queued' order by id";
    wait_for(sqlx::query_scalar(all).fetch_all(env.pool().bare())).expect("tasks")
}
