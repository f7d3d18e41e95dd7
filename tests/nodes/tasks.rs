//! A task reaches its node signed, and its answer wakes the run that waits for it: once, whatever is repeated or lost.

use std::time::Duration;

use domain::{Secret, StatusReason};
use engine::RunState;
use node_protocol::{Envelope, Outcome, Output, PullCredential, Refusal, Secrets};
use serde_json::json;
use store::node_tasks::{self, NewNodeTask};
use uuid::Uuid;

use crate::http::Http;
use crate::support::node::Node;
use crate::support::story::Story;
use crate::support::world::Do;

const HOUR: u64 = 3_600_000;

fn done() -> Outcome {
    Outcome::Succeeded { output: Output::Controlled }
}

/// A task for the node, made as an activity makes it; the run waits for the signal `word`.
async fn give(story: &Story, http: &Http, node: &Node, run: Option<Uuid>, secrets: Option<&Secrets>) -> Uuid {
    let id = Uuid::now_v7();
    let sealed = secrets.map(|secrets| {
        let bytes = Secret::new(serde_json::to_vec(secrets).unwrap());
        http.realm.keys.sealer.seal(&bytes, &node_tasks::sealed_for(id)).unwrap()
    });
    let new = NewNodeTask {
        id,
        node_id: node.id,
        org_id: None,
        project_id: None,
        instance_id: None,
        kind: "oci.control",
        idempotency_key: &format!("{id}/do"),
        generation: 1,
        epoch: 1,
        wakes: run.map(|run| (run, "word")),
        input: &json!({}),
        sealed: sealed.as_deref(),
        correlation_id: "c-task",
        trace_id: None,
    };
    let mut conn = story.pool.acquire().await.unwrap();
    node_tasks::insert(&mut conn, &new).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_wakes_the_run_that_waits_and_told_again_changes_nothing() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    let run = story.start([Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    give(&story, &http, &node, Some(run), None).await;
    let task = node.takes("5s").await;
    assert_eq!(
        (task.generation, task.kind.as_str(), task.correlation_id.as_str()),
        (1, "oci.control", "c-task")
    );
    assert_eq!(node.answers(&task, &done()).await.with(200)["status"], "succeeded");
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    let failed = Outcome::Failed { reason: StatusReason::Internal, message: "too late".into() };
    assert_eq!(
        node.answers(&task, &failed).await.with(200)["status"],
        "succeeded",
        "the first result stands"
    );
    let signals: i64 = sqlx::query_scalar("select count(*) from engine.signal where run_id = $1")
        .bind(run)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert_eq!(signals, 1);
    assert!(node.next("0s").await.is_none(), "a finished task is not handed out");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_handed_to_one_poll_and_again_when_nobody_hears_of_it() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    let id = give(&story, &http, &node, None, None).await;
    let (one, other) = tokio::join!(node.next("0s"), node.next("0s"));
    assert_eq!([&one, &other].iter().filter(|task| task.is_some()).count(), 1, "two polls, one task");
    story.advance(Duration::from_secs(50)).await;
    let progress = json!({ "phase": "pulling", "bytes_done": 5, "bytes_total": 10 });
    let answer = node.http.post(&node.path(&format!("/tasks/{id}/progress")), progress).await;
    assert_eq!(answer.status.as_u16(), 204);
    story.advance(Duration::from_secs(50)).await;
    assert!(node.next("0s").await.is_none(), "whoever tells of progress keeps the task");
    story.advance(Duration::from_secs(11)).await;
    let again = node.takes("0s").await;
    assert_eq!(again.task_id, id);
    node.answers(&again, &done()).await.with(200);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_waits_without_expiring_because_it_is_signed_when_it_is_handed_out() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    give(&story, &http, &node, None, None).await;
    story.advance(Duration::from_secs(86_400)).await;
    let task = node.takes("0s").await;
    assert_eq!(task.in_time(http.realm.now()), Ok(()));
    let much_later = http.realm.now() + chrono::TimeDelta::minutes(6);
    assert_eq!(task.in_time(much_later), Err(Refusal::Expired));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_polls_wait_without_a_connection_and_only_the_right_one_is_called() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let mut nodes = Vec::new();
    for n in 0..40 {
        nodes.push(Node::enrol(&http, &format!("gpu-{n}")).await);
    }
    let (chosen, others) = nodes.split_first().unwrap();
    let waiting = async {
        let polls = others.iter().map(|node| node.next("3s"));
        futures::future::join_all(polls).await
    };
    let meanwhile = async {
        // More polls wait than the pool has connections, and yet everybody is served.
        http.get("/api/v1/me").await.with(200);
        give(&story, &http, chosen, None, None).await;
        chosen.takes("3s").await
    };
    let (idle, task) = tokio::join!(waiting, meanwhile);
    assert!(idle.iter().all(Option::is_none));
    assert_eq!(task.node_id, chosen.id);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tasks_secrets_are_sealed_at_rest_and_open_in_its_envelope_alone() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let node = Node::enrol(&http, "gpu-1").await;
    let pull = PullCredential { username: "node".into(), password: "hunter2".into() };
    let secrets = Secrets { pull: Some(pull), env: [("TOKEN".into(), "hunter3".into())].into() };
    let id = give(&story, &http, &node, None, Some(&secrets)).await;
    let rests = || async {
        sqlx::query_scalar::<_, String>("select t::text from node_tasks t where id = $1")
            .bind(id)
            .fetch_one(&story.pool)
            .await
            .unwrap()
    };
    assert!(!rests().await.contains("hunter"));
    let signed = node.next("5s").await.unwrap();
    assert!(!format!("{signed:?}").contains("hunter"));
    let task = Envelope::open(&signed, &node.keyring, node.id).unwrap();
    assert_eq!(task.secrets, secrets);
    node.answers(&task, &done()).await.with(200);
    let sealed: Option<String> = sqlx::query_scalar("select sealed from node_tasks where id = $1")
        .bind(id)
        .fetch_one(&story.pool)
        .await
        .unwrap();
    assert_eq!(sealed, None, "what is done needs its secrets no more");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_nodes_task_does_not_exist() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let (one, other) = (Node::enrol(&http, "gpu-1").await, Node::enrol(&http, "gpu-2").await);
    give(&story, &http, &one, None, None).await;
    assert!(other.next("0s").await.is_none());
    let task = one.takes("0s").await;
    assert_eq!(other.answers(&task, &done()).await.with(404)["code"], "node_task_not_found");
    one.answers(&task, &done()).await.with(200);
    story.end().await;
}
