//! What people ask for in the life of an instance whose helpers are killed, and what must be true of it all the while.

use std::time::Duration;

use engine::{RunState, Start};
use serde_json::{Value, json};
use uuid::Uuid;
use workflows::reconcilers::drift::WatchDrift;

use crate::http::{admin, project};
use crate::support::fleet::{Fleet, status};
use crate::support::platform::id_of;
use crate::support::realm::EXAMPLE;

/// What an instance holds that runs.
const HELD: [&str; 5] = ["cpu_core 1", "memory_gib 1", "port 1", "service_account 1", "workload 1"];

/// The run that does it. Where the platform acts on the instance by itself, it is waited for.
pub async fn asks(fleet: &Fleet, id: Uuid, verb: &str, body: Value) -> Uuid {
    let path = project(&format!("/app-instances/{id}/{verb}"));
    for _ in 0..600 {
        let answer = fleet.platform.http.acting("operator").post(&path, body.clone()).await;
        if answer.status != 409 {
            return id_of(&answer.with(202)["workflow"]);
        }
        assert_eq!(answer.body["code"], "operation_in_progress", "{:#}", answer.body);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("something always acts on the instance\n{}", fleet.said());
}

/// How the run ended. Where it rests, it goes on by itself when its time comes; all the while the instance has at most so many
/// workloads.
pub async fn settles(fleet: &Fleet, run: Uuid, (id, most): (Uuid, usize)) -> RunState {
    let story = &fleet.platform.story;
    for _ in 0..1200 {
        let there = fleet.containers(id);
        assert!(there.len() <= most, "{there:?}");
        let state = story.state(run).await;
        match state {
            state if state.is_terminal() => return state,
            RunState::Paused => {
                let wakes: bool =
                    sqlx::query_scalar("select wake_at is not null from engine.run where id = $1")
                        .bind(run)
                        .fetch_one(&story.pool)
                        .await
                        .unwrap();
                assert!(wakes || story.state(run).await != RunState::Paused, "{}", story.describe(run).await);
                story.advance(Duration::from_secs(60)).await;
            }
            RunState::Stuck => panic!("{}\n{}", story.describe(run).await, fleet.said()),
            _ => {}
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it does not come to its end\n{}\n{}", story.describe(run).await, fleet.said());
}

/// A launch that its engine did not survive is taken back, and asked for again.
pub async fn runs_in_the_end(fleet: &Fleet, id: Uuid) {
    if status(&fleet.platform, id).await == "failed" {
        let again = asks(fleet, id, "retry", json!({})).await;
        assert_eq!(settles(fleet, again, (id, 1)).await, RunState::Succeeded, "{}", fleet.said());
    }
    assert_eq!(status(&fleet.platform, id).await, "running");
}

/// Looks at once for what differs, as the platform does every minute.
async fn look(fleet: &Fleet, until: impl AsyncFn() -> bool) {
    let story = &fleet.platform.story;
    let options = Start { correlation_id: "c-drift".into(), ..Start::default() };
    let mut tx = story.pool.begin().await.unwrap();
    let run = story.engine.start(&mut tx, &WatchDrift {}, options).await.unwrap();
    tx.commit().await.unwrap();
    // What it starts may be stopped at a gate, and its own end with it.
    while !until().await && !story.state(run.id).await.is_terminal() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether the platform brings back by itself what is gone.
pub async fn relaunches(fleet: &Fleet, relaunches: bool) {
    let path = admin(&format!("/policies/project/{EXAMPLE}/apps.relaunch_missing"));
    fleet.platform.http.put(&path, json!({ "value": relaunches })).await.with(200);
}

/// Waits until nothing acts on the instance: a run that looks already might find what is lost, and would not be the one to be struck.
pub async fn is_left_alone(fleet: &Fleet, id: Uuid) {
    let free = "select not exists (select 1 from engine.run where target = 'app_instance:' || $1::text
        and finished_at is null) and $2::text[] is not null";
    fleet.platform.story.until_true("nothing acts on it", free, id, &[]).await;
}

/// Somebody takes the workload away behind the platform's back, and the platform finds out: the run that saw it.
pub async fn loses_it(fleet: &Fleet, id: Uuid) -> Uuid {
    let before = newest_look(fleet, id).await;
    for name in fleet.containers(id) {
        fleet.engine.docker(&["rm", "--force", &name]).unwrap();
    }
    finds_out(fleet, id, before).await
}

/// The run that saw what somebody did behind the platform's back; another than this one.
pub async fn finds_out(fleet: &Fleet, id: Uuid, before: Option<Uuid>) -> Uuid {
    for _ in 0..600 {
        look(fleet, async || newest_look(fleet, id).await != before).await;
        if let Some(run) = newest_look(fleet, id).await.filter(|run| Some(*run) != before) {
            return run;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("nobody found out\n{}", fleet.said());
}

/// The newest run that brings the instance back to what it should be.
pub async fn newest_look(fleet: &Fleet, id: Uuid) -> Option<Uuid> {
    let newest =
        "select id from engine.run where kind = 'instance.reconcile' and target = 'app_instance:' || $1::text
        order by id desc limit 1";
    sqlx::query_scalar(newest).bind(id).fetch_optional(&fleet.platform.story.pool).await.unwrap()
}

/// What a change could not take away because its engine was dead stands beside what serves. The platform finds it there.
pub async fn is_put_right(fleet: &Fleet, id: Uuid) {
    for tries in 0..1200 {
        let there = fleet.containers(id);
        if there.len() == 1 && fleet.platform.held(id).await == HELD {
            return;
        }
        assert!(there.len() <= 2, "{there:?}");
        if tries % 20 == 19 {
            look(fleet, async || false).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:?} {:?}\n{}", fleet.containers(id), fleet.platform.held(id).await, fleet.said());
}

/// One workload, and it is this one.
pub async fn one_serves(fleet: &Fleet, id: Uuid, words: &str) {
    assert_eq!(fleet.containers(id).len(), 1, "{:?}", fleet.containers(id));
    let url = format!("{}/index.html", fleet.platform.url(id).await);
    let mut tries = 0;
    // An engine that was killed takes what it ran for stopped; the platform finds that, and has it started.
    let page = loop {
        match reqwest::get(&url).await {
            Ok(page) => break page.text().await.unwrap(),
            Err(error) if tries > 600 => panic!("{error}\n{}", fleet.said()),
            Err(_) if tries % 20 == 19 => look(fleet, async || false).await,
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
        tries += 1;
    };
    assert_eq!(fleet.containers(id).len(), 1, "{:?}", fleet.containers(id));
    assert_eq!(page, words);
    assert_eq!(fleet.platform.held(id).await, HELD);
}

/// It is gone with a receipt, nothing is there of it, and it holds nothing.
pub async fn is_gone(fleet: &Fleet, id: Uuid) {
    assert_eq!(status(&fleet.platform, id).await, "decommissioned");
    assert_eq!(fleet.platform.held(id).await, Vec::<String>::new());
    assert_eq!(fleet.engine.leftovers(), Vec::<String>::new());
    fleet.platform.http.get(&project(&format!("/app-instances/{id}/receipt"))).await.with(200);
}
