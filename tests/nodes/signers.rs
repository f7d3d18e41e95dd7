//! The key that signs tasks is replaced, and no node has to be told by hand: it learns of the new one by the word of the one that
//! it believes, however long it was away.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use activities::{Env, TaskSigners};
use agent::{Home, Simulated};
use clients::seal::Sealer;
use engine::testing::{Check, check_workflow};
use engine::{Engine, Start};
use node_protocol::{Keyring, SignerState};
use serde_json::json;
use workflows::reconcilers::signers::RotateSigners;

use crate::lifecycle::wait_for;
use crate::support::agent::RunningAgent;
use crate::support::database::TestDatabase;
use crate::support::docker::PORT;
use crate::support::node::Node;
use crate::support::platform::{Platform, profile};

/// Whoever signs now hands over, however new it is.
async fn rotate(platform: &Platform) {
    let options = Start { correlation_id: "c-rotate".into(), ..Start::default() };
    let mut tx = platform.story.pool.begin().await.unwrap();
    let rotation = RotateSigners { signs_for_seconds: 0 };
    let mut run = platform.story.engine.start(&mut tx, &rotation, options).await.unwrap();
    tx.commit().await.unwrap();
    run.begin();
    platform.succeeds(run.id).await;
}

fn believed_by(folder: &Path) -> Keyring {
    Home::at(folder).unwrap().keyring().unwrap()
}

fn in_state(keyring: &Keyring, state: SignerState) -> Vec<String> {
    keyring.signers.iter().filter(|one| one.state == state).map(|one| one.key_id.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_signer_takes_over_without_a_task_being_lost() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let (id, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let before = in_state(&believed_by(&agent.folder), SignerState::Active);

    rotate(&platform).await;
    // No time passes by which a task that was dropped would be handed out again.
    platform.decommission(id).await;
    let (_, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let now = believed_by(&agent.folder);
    assert_eq!(in_state(&now, SignerState::Grace), before);
    assert_ne!(in_state(&now, SignerState::Active), before);
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_while_signers_came_and_went_believes_the_one_that_signs_now() {
    let platform = Platform::new().await;
    let driver = Simulated::new();
    let (agent, allocation) = platform.node("gpu-1", &driver, 4).await;
    let number = platform.version(&profile(PORT, 30)).await;
    let first = in_state(&believed_by(&agent.folder), SignerState::Active);
    let folder = agent.kill().await;
    rotate(&platform).await;
    platform.story.advance(Duration::from_secs(8 * 24 * 3600)).await;
    rotate(&platform).await;

    let agent = RunningAgent::again(&platform.http, folder, &driver);
    let (_, run) = platform.deploy_version(allocation, &number, 1).await;
    platform.succeeds(run).await;
    let now = believed_by(&agent.folder);
    assert_eq!(
        in_state(&now, SignerState::Retired),
        first,
        "who handed over long ago signs nothing that counts"
    );
    agent.end().await;
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_word_of_a_signer_counts_unless_it_was_revoked() {
    let platform = Platform::new().await;
    let node = Node::enrol(&platform.http, "gpu-1").await;
    rotate(&platform).await;
    let beat = async |sequence: i64, version: i64| {
        let body = json!({ "sequence": sequence, "agent_version": "test", "workloads": [], "keyring_version": version });
        let answer = node.http.post(&node.path("/heartbeat"), body).await.with(200);
        serde_json::from_value::<node_protocol::HeartbeatAnswer>(answer).unwrap()
    };
    let answer = beat(1, node.keyring.version).await;
    let [handover] = answer.handovers.as_slice() else { panic!("{answer:?}") };
    assert_eq!(node.keyring.successor(&answer.keyring), None, "by one that the node does not know");
    let next = node.keyring.successor(handover).expect("by the one that it believes");
    let now = next.successor(&answer.keyring).expect("the list as it is now");
    assert_eq!(beat(2, now.version).await.handovers, vec![], "who knows need not be told");
    sqlx::query("update task_signers set state = 'revoked' where state = 'grace'")
        .execute(&platform.story.pool)
        .await
        .unwrap();
    assert_eq!(beat(3, node.keyring.version).await.handovers, vec![]);
    platform.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handing_over_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: RotateSigners { signs_for_seconds: 3600 },
        fresh_env: grown_old,
        leftovers: |env| {
            let all = "select state || ' ' || count(*) || ' ' || count(handover) from task_signers
                       where exists (select 1 from task_signers where state = 'grace') group by state order by 1";
            wait_for(sqlx::query_scalar(all).fetch_all(env.pool().bare())).unwrap()
        },
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    database.drop().await;
}

/// One signer, which has signed for two hours.
fn grown_old(engine: &Engine) -> Arc<Env> {
    let sealer = Sealer::from_lines("story AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    let signers = TaskSigners::new(sealer);
    wait_for(async {
        let mut conn = engine.pool().bare().acquire().await.unwrap();
        sqlx::raw_sql("delete from task_signers").execute(&mut *conn).await.unwrap();
        signers.active(&mut conn).await.unwrap();
        let older = "update task_signers set created_at = created_at - interval '2 hours'";
        sqlx::raw_sql(older).execute(&mut *conn).await.unwrap();
    });
    Arc::new(Env::new(engine.clone()).with_signers(signers))
}
