//! What nodes owe of changes that went on without them: it is asked for again, paid only with evidence of what is owed, and by
//! whoever acts on the instance, if somebody does.

use std::time::Duration;

use domain::StatusReason;
use engine::{RunState, Start};
use node_protocol::{Envelope, Evidence, Generations, Outcome};
use serde_json::{Value, json};
use uuid::Uuid;
use workflows::instance::reconcile::ReconcileInstance;
use workflows::instance::target;

use super::decommission::settled;
use super::drift::compares;
use super::nodes::{begins_to_watch, watch};
use super::outages::{HELD, meddle, runs, serving, upgrade};
use crate::http::admin;
use crate::support::node::Node;
use crate::support::platform::Platform;

/// As long as a node has for a removal, and a moment.
const TOO_LONG: Duration = Duration::from_secs(601);

/// The instances for whose sake a node owes something.
async fn owed(platform: &Platform) -> Vec<Uuid> {
    let shown = platform.http.get(&admin("/teardown-debts")).await.with(200);
    let debts = shown["items"].as_array().unwrap().iter();
    debts.map(|debt| debt["app_instance_id"].as_str().unwrap().parse().unwrap()).collect()
}

async fn live_keys(platform: &Platform) -> i64 {
    sqlx::query_scalar("select count(*) from service_account_keys where revoked_at is null")
        .fetch_one(&platform.story.pool)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_workload_that_goes_late_is_owed_until_then_and_given_back() {
    let (platform, node, id) = serving().await;
    let run = upgrade(&platform, id).await;
    node.launches(true).await;
    let removal = node.takes("10s").await;
    platform.story.until(run, &[RunState::Waiting]).await;
    platform.story.advance(TOO_LONG).await;
    platform.succeeds(run).await;
    assert_eq!(owed(&platform).await, [id]);
    assert_ne!(platform.held(id).await, HELD, "the old one is still on the books");
    assert_eq!(platform.instance(id).await["last_operation"]["left_behind"], "the old workload");
    // It returns, does what it was asked, and reports the new one alone.
    node.answers(&removal, &node.swears(&node.finds(&removal))).await.with(200);
    node.beats(2, runs(id, 2)).await.with(200);
    watch(&platform).await;
    assert_eq!(platform.held(id).await, HELD);
    assert_eq!(live_keys(&platform).await, 1, "only what runs has a key");
    assert_eq!(owed(&platform).await, Vec::<Uuid>::new());
    assert_eq!(platform.instance(id).await["last_operation"]["left_behind"], Value::Null);
    platform.end().await;
}

/// An instance whose node failed at the removal of what served before, and is asked again.
async fn owing_the_old_one() -> (Platform, Node, Uuid, Envelope) {
    let (platform, node, id) = serving().await;
    let run = upgrade(&platform, id).await;
    node.launches(true).await;
    let removal = node.takes("10s").await;
    node.answers(&removal, &failed()).await.with(200);
    platform.succeeds(run).await;
    assert_eq!(owed(&platform).await, [id]);
    let again = node.takes("10s").await;
    assert_eq!((&again.kind, &again.input), (&removal.kind, &removal.input));
    (platform, node, id, again)
}

async fn paid(platform: &Platform, id: Uuid) {
    watch(platform).await;
    assert_eq!(platform.held(id).await, HELD);
    assert_eq!(owed(platform).await, Vec::<Uuid>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_workload_that_its_node_fails_to_remove_is_asked_for_again() {
    let (platform, node, id, again) = owing_the_old_one().await;
    node.answers(&again, &node.swears(&node.finds(&again))).await.with(200);
    paid(&platform, id).await;
    platform.end().await;
}

/// A stray that was taken away meanwhile is not what is owed: whoever got its place would share it.
#[tokio::test(flavor = "multi_thread")]
async fn the_evidence_of_another_removal_pays_no_debt() {
    let (platform, node, id, again) = owing_the_old_one().await;
    let of_another = Evidence { generations: Generations::Only(7), ..node.finds(&again) };
    node.answers(&again, &node.swears(&of_another)).await.with(200);
    watch(&platform).await;
    assert_eq!(owed(&platform).await, [id]);
    assert_ne!(platform.held(id).await, HELD, "the old one is still on the books");
    let once_more = node.takes("10s").await;
    assert_eq!((&once_more.kind, &once_more.input), (&again.kind, &again.input));
    node.answers(&once_more, &node.swears(&node.finds(&once_more))).await.with(200);
    paid(&platform, id).await;
    platform.end().await;
}

/// It looks by a report of the time before, and is not done before the next that was.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_looks_at_an_instance_collects_what_is_owed_for_it() {
    let (platform, node, id, again) = owing_the_old_one().await;
    let both = [runs(id, 1), runs(id, 2)].map(|one| one[0].clone());
    node.beats(2, json!(both)).await.with(200);
    compares(&platform).await;
    let look = "select id from engine.run where kind = 'instance.reconcile' and finished_at is null";
    let look: Uuid = sqlx::query_scalar(look).fetch_one(&platform.story.pool).await.unwrap();
    platform.story.until(look, &[RunState::Waiting]).await;
    node.answers(&again, &node.swears(&node.finds(&again))).await.with(200);
    watch(&platform).await;
    assert_eq!(owed(&platform).await, [id], "somebody acts on it");
    for sequence in 3..=4 {
        node.beats(sequence, runs(id, 2)).await.with(200);
    }
    platform.story.advance(Duration::from_secs(2)).await;
    platform.succeeds(look).await;
    assert_eq!(platform.held(id).await, HELD);
    assert_eq!(owed(&platform).await, Vec::<Uuid>::new());
    assert_eq!(live_keys(&platform).await, 1, "only what runs has a key");
    platform.end().await;
}

/// Somebody waits for the instance.
const IN_LINE: &str = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')
    and $1::uuid is not null and $2::text[] is not null";

/// What a run takes in the meantime would be given back with the debt.
#[tokio::test(flavor = "multi_thread")]
async fn a_debt_is_left_to_whoever_begins_to_act_before_it_is_paid() {
    let (platform, node, id, again) = owing_the_old_one().await;
    node.answers(&again, &node.swears(&node.finds(&again))).await.with(200);
    let mut acting = platform.story.pool.begin().await.unwrap();
    let holds = sqlx::query("select id from app_instances where id = $1 for update").bind(id);
    holds.execute(&mut *acting).await.unwrap();
    let watching = begins_to_watch(&platform).await;
    platform.story.until_true("the debt is about to be paid", IN_LINE, id, &[]).await;
    let acts = Start { target: Some(target(id)), correlation_id: "c-acts".into(), ..Start::default() };
    let look = ReconcileInstance { instance: id, node_id: node.id };
    let mut look = platform.story.engine.start(&mut acting, &look, acts).await.unwrap();
    acting.commit().await.unwrap();
    platform.succeeds(watching).await;
    assert_eq!(owed(&platform).await, [id]);
    look.begin();
    platform.story.until(look.id, &[RunState::Waiting]).await;
    for sequence in 2..=3 {
        node.beats(sequence, runs(id, 2)).await.with(200);
    }
    platform.story.advance(Duration::from_secs(2)).await;
    platform.succeeds(look.id).await;
    paid(&platform, id).await;
    platform.end().await;
}

fn failed() -> Outcome {
    Outcome::Failed { reason: StatusReason::Internal, message: "not now".into() }
}

/// Nothing of the new workload ever stood there, so that no look at the node would find a stray.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_owed_beside_something_that_serves_is_asked_for_again_and_no_more_than_that() {
    let (platform, node, id) = serving().await;
    let run = upgrade(&platform, id).await;
    node.takes("10s").await;
    platform.story.until(run, &[RunState::Waiting]).await;
    platform.story.advance(Duration::from_secs(31 * 60)).await;
    watch(&platform).await;
    settled(&platform, run, RunState::Compensated).await;
    assert_eq!(owed(&platform).await, [id]);
    node.beats(2, runs(id, 1)).await.with(200);
    let removal = node.takes("10s").await;
    node.answers(&removal, &failed()).await.with(200);
    watch(&platform).await;
    let again = node.takes("10s").await;
    assert_eq!((&again.kind, &again.input), (&removal.kind, &removal.input));
    node.answers(&again, &node.swears(&node.finds(&again))).await.with(200);
    // One that cannot be read keeps its debt, and the watch goes on.
    let garble = "update app_instance_releases set resources = jsonb_build_object('was', resources) where instance_id = $1";
    meddle(&platform, garble, id).await;
    watch(&platform).await;
    assert_eq!(owed(&platform).await, [id]);
    let mend = "update app_instance_releases set resources = resources -> 'was' where instance_id = $1";
    meddle(&platform, mend, id).await;
    watch(&platform).await;
    assert_eq!(owed(&platform).await, Vec::<Uuid>::new());
    assert_eq!(platform.held(id).await, HELD);
    assert_eq!(platform.instance(id).await["status"], "running");
    platform.end().await;
}
