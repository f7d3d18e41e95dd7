//! The whole line: a run gives a task, the agent does it, its answer wakes the run. On a simulated node with every loss
//! between the two, and on a real container engine.

use std::io::Write;
use std::time::Duration;

use agent::{
    Agent, Docker, Driver, Home, Identity, Settings, Simulated, SimulatedFault, Told, hold_to_contract,
};
use domain::StatusReason;
use engine::RunState;
use node_protocol::{
    ControlAction, Evidence, Generations, HealthProbe, OciLaunch, Outcome, Output, Probe, ProbeKind,
    PublicKey, Remove, Secrets, Signed, Task,
};
use serde_json::Value;
use sqlx::PgPool;
use store::node_tasks::{self, NewNodeTask};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::http::Http;
use crate::support::agent::{Door, RunningAgent};
use crate::support::docker::{Engine, PORT};
use crate::support::story::Story;
use crate::support::world::Do;

const HOUR: u64 = 3_600_000;

/// A story with a door, and a run for every task that waits for its result.
pub(super) struct Line {
    pub(super) story: Story,
    pub(super) http: Http,
    pub(super) door: Door,
}

impl Line {
    pub(super) async fn new() -> Line {
        let story = Story::new().await;
        let http = Http::over(&story).await;
        let door = Door::open(&http).await;
        Line { story, http, door }
    }

    /// Gives the node a task on behalf of a run that waits for it.
    pub(super) async fn give(&self, node: Uuid, task: &Task, generation: i64) -> (Uuid, Uuid) {
        let run = self.story.start([Do::Wait(HOUR)]).await;
        self.story.until(run, &[RunState::Waiting]).await;
        let id = Uuid::now_v7();
        let new = NewNodeTask {
            id,
            node_id: node,
            org_id: None,
            project_id: None,
            instance_id: None,
            kind: task.kind(),
            idempotency_key: &format!("{run}/task/do"),
            generation,
            epoch: 1,
            wakes: Some((run, "word")),
            input: &task.input().unwrap(),
            sealed: None,
            correlation_id: "c-line",
            trace_id: None,
        };
        let mut conn = self.story.pool.acquire().await.unwrap();
        node_tasks::insert(&mut conn, &new).await.unwrap();
        (run, id)
    }

    /// Gives it, and waits until the run that asked was woken by the answer.
    pub(super) async fn done(&self, node: Uuid, task: &Task, generation: i64) -> Outcome {
        let (run, id) = self.give(node, task, generation).await;
        assert_eq!(self.story.ends(run).await, RunState::Succeeded);
        result(&self.story.pool, id).await
    }

    pub(super) async fn end(self) {
        drop(self.door);
        self.story.end().await;
    }
}

async fn result(pool: &PgPool, task: Uuid) -> Outcome {
    let result: Value = sqlx::query_scalar("select result from node_tasks where id = $1")
        .bind(task)
        .fetch_one(pool)
        .await
        .unwrap();
    serde_json::from_value(result).unwrap()
}

pub(super) fn launch(engine: &agent::Stage, instance: Uuid, generation: i64) -> Task {
    Task::OciLaunch(Box::new(OciLaunch { workload: engine.workload(instance, generation) }))
}

pub(super) fn removal(instance: Uuid, last: i64) -> Task {
    Task::OciRemove(Remove { instance_id: instance, generations: Generations::UpTo(last), for_good: true })
}

pub(super) fn stage() -> agent::Stage {
    agent::Stage { digest: format!("sha256:{}", "a".repeat(64)), port: PORT }
}

fn failure(outcome: &Outcome) -> StatusReason {
    match outcome {
        Outcome::Failed { reason, .. } => *reason,
        other => panic!("it should have failed: {other:?}"),
    }
}

fn evidence(outcome: &Outcome) -> &Signed {
    match outcome {
        Outcome::Succeeded { output: Output::Removed { evidence } } => evidence,
        other => panic!("there should be evidence: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_does_a_task_and_its_answer_wakes_the_run() {
    let line = Line::new().await;
    let driver = Simulated::new();
    let agent = RunningAgent::enrol(&line.http, &line.door, "gpu-1", &driver).await;
    let instance = Uuid::now_v7();
    let outcome = line.done(agent.id, &launch(&stage(), instance, 1), 1).await;
    assert!(matches!(outcome, Outcome::Succeeded { output: Output::Launched { .. } }), "{outcome:?}");
    assert_eq!(driver.launches(), 1);
    driver.will(SimulatedFault::FailNext(StatusReason::ImagePullFailed));
    let outcome = line.done(agent.id, &launch(&stage(), instance, 2), 2).await;
    assert_eq!(failure(&outcome), StatusReason::ImagePullFailed);
    agent.end().await;
    line.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_could_not_be_told_is_told_after_a_restart_and_nothing_is_done_twice() {
    let line = Line::new().await;
    let driver = Simulated::new();
    let agent = RunningAgent::enrol(&line.http, &line.door, "gpu-1", &driver).await;
    driver.will(SimulatedFault::Hang);
    let (run, task) = line.give(agent.id, &launch(&stage(), Uuid::now_v7(), 1), 1).await;
    line.story.until_true("the task is on its way to the agent", TASK_IS_OUT, task, &[]).await;
    // On its way it could still get lost.
    until_begun(&agent).await;
    line.door.cut(true);
    driver.release(1);
    line.story
        .until_true("it was launched", "select $1::uuid is not null and $2::text[] is not null", task, &[])
        .await;
    while driver.launches() == 0 || !journal(&agent).contains("finished") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let folder = agent.kill().await;
    let agent = RunningAgent::again(&line.http, folder, &driver);
    line.door.cut(false);
    assert_eq!(line.story.ends(run).await, RunState::Succeeded);
    assert_eq!(driver.launches(), 1, "the workload was never doubled");
    agent.end().await;
    line.end().await;
}

pub(super) const TASK_IS_OUT: &str =
    "select status = 'handed_out' and $2::text[] is not null from node_tasks where id = $1";

pub(super) async fn until_begun(agent: &RunningAgent) {
    while !journal(agent).contains("begun") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) fn journal(agent: &RunningAgent) -> String {
    std::fs::read_to_string(agent.folder.join("journal")).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_killed_in_the_middle_does_the_task_again_when_its_lease_ends() {
    let line = Line::new().await;
    let driver = Simulated::new();
    let agent = RunningAgent::enrol(&line.http, &line.door, "gpu-1", &driver).await;
    driver.will(SimulatedFault::Hang);
    let (run, task) = line.give(agent.id, &launch(&stage(), Uuid::now_v7(), 1), 1).await;
    line.story.until_true("the task is with the agent", TASK_IS_OUT, task, &[]).await;
    until_begun(&agent).await;
    let agent = RunningAgent::again(&line.http, agent.kill().await, &driver);
    line.story.advance(Duration::from_secs(61)).await;
    assert_eq!(line.story.ends(run).await, RunState::Succeeded);
    assert_eq!(driver.launches(), 1);
    agent.end().await;
    line.end().await;
}

/// As where a disk was replaced, or an old copy of it put back.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_journal_was_set_back_is_heard_at_once() {
    let line = Line::new().await;
    let driver = Simulated::new();
    let agent = RunningAgent::enrol(&line.http, &line.door, "gpu-1", &driver).await;
    let heard = "select report_sequence > $2[1]::bigint from nodes where id = $1";
    line.story.until_true("it reports", heard, agent.id, &["1"]).await;
    let (node, folder) = (agent.id, agent.kill().await);
    let of_long_ago = std::fs::read(folder.join("journal")).unwrap();
    let mut journal = std::fs::File::options().append(true).open(folder.join("journal")).unwrap();
    writeln!(journal, r#"{{"entry":"reported","sequence":1000000}}"#).unwrap();
    let agent = RunningAgent::again(&line.http, folder, &driver);
    line.story.until_true("it has reported for long", heard, node, &["1000000"]).await;
    let folder = agent.kill().await;
    let last: i64 = sqlx::query_scalar("select report_sequence from nodes where id = $1")
        .bind(node)
        .fetch_one(&line.story.pool)
        .await
        .unwrap();
    std::fs::write(folder.join("journal"), of_long_ago).unwrap();
    let agent = RunningAgent::again(&line.http, folder, &driver);
    line.story.until_true("it is heard", heard, node, &[&last.to_string()]).await;
    agent.end().await;
    line.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_comes_with_evidence_that_the_nodes_own_key_signed() {
    let line = Line::new().await;
    let driver = Simulated::new();
    let agent = RunningAgent::enrol(&line.http, &line.door, "gpu-1", &driver).await;
    let instance = Uuid::now_v7();
    line.done(agent.id, &launch(&stage(), instance, 1), 1).await;
    let outcome = line.done(agent.id, &removal(instance, 2), 2).await;
    let pem: String = sqlx::query_scalar("select public_key from nodes where id = $1")
        .bind(agent.id)
        .fetch_one(&line.story.pool)
        .await
        .unwrap();
    let evidence: Evidence = evidence(&outcome).open(&PublicKey::from_pem(&pem).unwrap()).unwrap();
    assert!(evidence.is_clean() && evidence.instance_id == instance, "{evidence:?}");
    assert_eq!(evidence.removed.len(), 2, "its container and its network: {:?}", evidence.removed);
    agent.end().await;
    line.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_not_started_with_another_driver_than_it_enrolled_with() {
    let line = Line::new().await;
    let driver = Simulated::new();
    let folder = RunningAgent::enrol(&line.http, &line.door, "gpu-1", &driver).await.kill().await;
    let home = Home::at(&folder).unwrap();
    let identity = Identity { driver: "docker".to_owned(), ..home.identity().unwrap() };
    home.keep_identity(&identity).unwrap();
    let opened = Agent::open(home, driver, Settings::new("test"), std::sync::Arc::new(chrono::Utc::now));
    let fault = opened.err().expect("it would swear that nothing runs here");
    assert!(fault.to_string().contains("`docker`") && fault.to_string().contains("`simulated`"), "{fault}");
    std::fs::remove_dir_all(&folder).unwrap();
    line.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_docker_driver_holds_the_contract() {
    let engine = Engine::start().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    hold_to_contract(&driver, &engine.stage).await;
    assert_eq!(engine.leftovers(), Vec::<String>::new());
}

/// The agent may be killed after a container is gone and before its files are, or before there is a container at all.
#[tokio::test(flavor = "multi_thread")]
async fn files_without_a_container_go_with_the_instance() {
    let engine = Engine::start().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let instance = Uuid::now_v7();
    let (told, _) = Told::new(CancellationToken::new());
    driver.network(Uuid::nil(), &engine.stage.workload(instance, 1)).await.unwrap();
    for generation in [1, 2] {
        let mut workload = engine.stage.workload(instance, generation);
        workload.files = [("packages.json".to_owned(), "[]".to_owned())].into();
        driver.launch(&workload, &Secrets::default(), &told).await.unwrap();
        engine.docker(&["rm", "--force", &workload.container_name()]).unwrap();
    }
    assert_eq!(driver.leftovers(instance).await.unwrap().len(), 3, "a network, and the files of two");
    driver.remove(instance, Generations::Only(1), false).await.unwrap();
    assert_eq!(driver.leftovers(instance).await.unwrap().len(), 2, "only those that were meant");
    driver.remove(instance, Generations::UpTo(1), true).await.unwrap();
    assert_eq!(driver.leftovers(instance).await.unwrap(), Vec::<String>::new());
}

/// What is in a host's memory is gone when it is started anew; the container is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_has_its_files_again_after_its_host_lost_them() {
    let engine = Engine::start().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let (told, _) = Told::new(CancellationToken::new());
    let mut workload = engine.stage.workload(Uuid::now_v7(), 1);
    let (instance, name) = (workload.instance_id, workload.container_name());
    workload.files = [("packages.json".to_owned(), r#"["numpy"]"#.to_owned())].into();
    driver.network(Uuid::nil(), &workload).await.unwrap();
    driver.launch(&workload, &Secrets::default(), &told).await.unwrap();
    let folder = std::path::Path::new("/dev/shm/gpuaas").join(&name);
    for action in [ControlAction::Start, ControlAction::Restart] {
        driver.control(instance, 1, ControlAction::Stop).await.unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        driver.control(instance, 1, action).await.unwrap();
        let read = ["exec", &name, "/bin/busybox", "cat", "/run/gpuaas/packages.json"];
        assert_eq!(engine.docker(&read).unwrap(), r#"["numpy"]"#, "{action:?}");
    }
    driver.remove(instance, Generations::UpTo(1), true).await.unwrap();
    assert!(!folder.exists(), "its files went with it");
    assert_eq!(driver.leftovers(instance).await.unwrap(), Vec::<String>::new());
}

/// Docker's own pools are used up after some thirty networks.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_has_networks_for_more_instances_than_dockers_own_pools() {
    let engine = Engine::start().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let instances: Vec<Uuid> = (0..40).map(|_| Uuid::now_v7()).collect();
    for instance in &instances {
        let workload = engine.stage.workload(*instance, 1);
        let network = driver.network(Uuid::nil(), &workload).await.unwrap().expect("a network");
        assert_eq!(network.prefix, 28);
    }
    for instance in instances {
        driver.remove(instance, Generations::UpTo(1), true).await.unwrap();
    }
    assert_eq!(engine.leftovers(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_container_is_launched_serves_and_is_taken_away_without_a_trace() {
    let engine = Engine::start().await;
    let line = Line::new().await;
    let driver = Docker::connect(&engine.host()).await.unwrap();
    let agent = RunningAgent::enrol(&line.http, &line.door, "gpu-1", &driver).await;
    let instance = Uuid::now_v7();
    let outcome = line.done(agent.id, &launch(&engine.stage, instance, 1), 1).await;
    let Outcome::Succeeded { output: Output::Launched { members } } = &outcome else { panic!("{outcome:?}") };
    let probe = Probe {
        kind: ProbeKind::Http,
        path: "/index.html".into(),
        port: PORT,
        interval_seconds: 1,
        timeout_seconds: 1,
        grace_seconds: 30,
    };
    let member = members[0].member.clone();
    let asked =
        HealthProbe { instance_id: instance, member, generation: 1, probe: Some(probe), requests: vec![] };
    let outcome = line.done(agent.id, &Task::DiagHealthProbe(asked), 1).await;
    assert!(matches!(outcome, Outcome::Succeeded { output: Output::Healthy { .. } }), "{outcome:?}");
    let url = format!("http://127.0.0.1:{}/index.html", members[0].ports["http"]);
    assert_eq!(reqwest::get(&url).await.unwrap().text().await.unwrap(), "welcome");
    let (said, _) = driver.logs(instance, "main", 10, None).await.unwrap().into_parts();
    assert!(said.iter().any(|line| line.text.contains("response:200")), "{said:?}");
    confined(&engine, &members[0].container_id);
    let outcome = line.done(agent.id, &removal(instance, 2), 2).await;
    evidence(&outcome);
    assert_eq!(engine.leftovers(), Vec::<String>::new());
    agent.end().await;
    line.end().await;
}

/// What the engine itself says of the container.
fn confined(engine: &Engine, container: &str) {
    let format = "{{.HostConfig.Privileged}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} \
                  {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.PidsLimit}} {{.HostConfig.Memory}} {{.Config.User}} \
                  {{len .Mounts}}";
    let said = engine.docker(&["inspect", "--format", format, container]).unwrap();
    assert_eq!(said, "false [ALL] [no-new-privileges] true 64 1073741824 65534:65534 0");
}
