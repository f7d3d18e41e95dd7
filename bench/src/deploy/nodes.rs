//! Many nodes on one server, ten instances each: every node waits for its next task and beats every ten seconds, and twenty
//! tasks a second are given to them in turn. What counts is how long a task lies there before its node has it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use domain::ProjectRole;
use serde_json::{Value, json};
use store::node_tasks::{self, NewNodeTask};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};
use uuid::Uuid;

use crate::api::{Line, Platform, Target, answered, free_address};
use crate::failure::Failure;
use crate::process::{cpu_of, peak_resident};
use crate::report::{Bar, Figure, percentile, say};
use crate::server::{Database, Server, execute};

const INSTANCES: usize = 10;
const BEAT: Duration = Duration::from_secs(10);
const TASKS_PER_SECOND: u32 = 20;
/// Beats come over these connections; each waiting node has one of its own.
const BEATING: usize = 64;

/// How many, and what they are held to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fleet {
    nodes: usize,
    names: [&'static str; 5],
    pickup: Bar,
    memory: Bar,
}

impl Fleet {
    pub(super) const fn held(nodes: usize) -> Fleet {
        let names = [
            "task pickup p99",
            "task pickup p50",
            "server memory with nodes",
            "server CPU with nodes",
            "generator CPU with nodes",
        ];
        Fleet { nodes, names, pickup: Bar::AtMost(500.0), memory: Bar::AtMost(300.0) }
    }

    /// Told for its own sake.
    pub(super) const fn told(nodes: usize) -> Fleet {
        let names = [
            "many nodes: task pickup p99",
            "many nodes: task pickup p50",
            "many nodes: server memory",
            "many nodes: server CPU",
            "many nodes: generator CPU",
        ];
        Fleet { nodes, names, pickup: Bar::None, memory: Bar::None }
    }
}

/// A task as it was given: to whom, and when.
type Given = Arc<Mutex<Vec<Option<(Uuid, Instant)>>>>;

pub(super) async fn measure(server: &Server, fleet: Fleet, time: Duration) -> Result<Vec<Figure>, Failure> {
    let database = server.database("deploy").await?;
    let platform = Platform::start_whole(&database, free_address()?, ProjectRole::Operator).await?;
    let me = Target::get(platform.address, "/api/v1/me", &platform.bearer());
    let said = |failure| Failure::Setup(format!("{failure}: {}", platform.said()));
    answered(&me).await.map_err(said)?;
    settle(&database, fleet.nodes).await?;
    say(&format!("{} nodes begin to wait and to beat…", fleet.nodes));
    let given: Given = Arc::new(Mutex::new(vec![None; fleet.nodes]));
    let (told, mut picked) = mpsc::unbounded_channel();
    let busy = Arc::new(AtomicUsize::new(0));
    let mut life = JoinSet::new();
    for node in 0..fleet.nodes {
        let poll = Poll {
            node,
            bearer: platform.node_bearer(id(node))?,
            given: Arc::clone(&given),
            told: told.clone(),
            busy: Arc::clone(&busy),
        };
        life.spawn(poll.for_ever(platform.address));
    }
    for lane in 0..BEATING {
        let nodes: Vec<usize> = (lane..fleet.nodes).step_by(BEATING).collect();
        let bearers: Result<Vec<String>, Failure> =
            nodes.iter().map(|node| platform.node_bearer(id(*node))).collect();
        life.spawn(beat(platform.address, nodes, bearers?, Arc::clone(&busy)));
    }
    // Everybody has beaten once, and waits.
    sleep(BEAT + Duration::from_secs(1)).await;
    let (before, generator) = (cpu_of(platform.pid())?, cpu_of(std::process::id())?);
    let began = Instant::now();
    give(&database, &given, fleet.nodes, time).await?;
    // The last ones are on their way.
    sleep(Duration::from_secs(2)).await;
    let took = began.elapsed();
    let share = |used: Duration| 100.0 * used.as_secs_f64() / took.as_secs_f64();
    let (server_cpu, own_cpu) =
        (share(cpu_of(platform.pid())? - before), share(cpu_of(std::process::id())? - generator));
    let memory = peak_resident(platform.pid())? as f64 / 1e6;
    if let Some(Ok(Err(failure))) = life.try_join_next() {
        return Err(failure);
    }
    life.shutdown().await;
    let mut times = Vec::new();
    while let Ok(time) = picked.try_recv() {
        times.push(time);
    }
    let wanted = (time.as_secs_f64() * f64::from(TASKS_PER_SECOND)) as usize;
    if times.len() * 100 < wanted * 95 {
        return Err(Failure::Setup(format!("of {wanted} tasks only {} were picked up", times.len())));
    }
    drop(platform);
    server.drop(database).await?;
    let busy = busy.load(Ordering::Relaxed);
    Ok(figures(fleet, (&times, busy), memory, (server_cpu, own_cpu)))
}

fn figures(
    fleet: Fleet,
    (times, busy): (&[f64], usize),
    memory: f64,
    (server, generator): (f64, f64),
) -> Vec<Figure> {
    let beside = format!(
        "{} nodes of {INSTANCES} instances, a beat each {} s, {TASKS_PER_SECOND} tasks/s, {} picked up, {busy} times told to \
         come again",
        fleet.nodes,
        BEAT.as_secs(),
        times.len()
    );
    let figure = |name, value, unit, bar| Figure { name, value, unit, bar, beside: beside.clone() };
    let [p99, p50, held, cpu, own] = fleet.names;
    vec![
        figure(p99, percentile(times, 99.0), "ms", fleet.pickup),
        figure(p50, percentile(times, 50.0), "ms", Bar::None),
        figure(held, memory, "MB", fleet.memory),
        figure(cpu, server, "% of a core", Bar::None),
        figure(own, generator, "% of a core", Bar::None),
    ]
}

fn id(node: usize) -> Uuid {
    Uuid::from_u128(0x7000_8000_0000_0000_0000 + node as u128)
}

fn instance(node: usize, place: usize) -> Uuid {
    Uuid::from_u128(0x7000_9000_0000_0000_0000 + (node * INSTANCES + place) as u128)
}

/// Nodes that have enrolled, an allocation on each, and the instances on it, all running and metered.
async fn settle(database: &Database, nodes: usize) -> Result<(), Failure> {
    let mut conn = database.pool.acquire().await?;
    let last = nodes - 1;
    let (first, of, all) = (id(0), instance(0, 0), nodes * INSTANCES - 1);
    // Ids are counted up in their last twelve digits.
    let node = format!("(left('{first}', 24) || lpad(to_hex(n), 12, '0'))::uuid");
    let own = format!("(left('{of}', 24) || lpad(to_hex(n), 12, '0'))::uuid");
    let under = format!("(left('{first}', 24) || lpad(to_hex(n / {INSTANCES}), 12, '0'))::uuid");
    execute(
        &mut conn,
        format!(
            "insert into nodes (id, name, status, address, driver, agent_version, inventory, key_id, public_key, last_seen_at,
                     created_by, enrolled_at)
             select {node}, 'node-' || n, 'active', '127.0.0.1', 'simulated', 'bench',
                    '{{\"cpu_cores\": 64, \"memory_gib\": 512, \"gpus\": []}}', 'key-' || n, 'none', engine.now(),
                    '{nobody}', engine.now()
             from generate_series(0, {last}) n;
             insert into allocations (id, org_id, project_id, node_id, capacity_shape, sku, gpu_count, cpu_cores, memory_gib,
                     status, created_by, correlation_id, activated_at)
             select {node}, p.org_id, p.id, {node}, 'baremetal', 'cpu', 0, 64, 512, 'active', '{nobody}', 'bench', engine.now()
             from generate_series(0, {last}) n, projects p;
             insert into app_instances (id, org_id, project_id, app_slug, version, display_name, status, operating_mode,
                     control_plane_scope, runtime_backend, allocation_id, placement_intent, config, resources,
                     correlation_id, created_by)
             select {own}, p.org_id, p.id, 'hello', '1.0.0', 'hello', 'running', 'tenant_dedicated', 'project',
                    'launchable_oci', {under}, '{{}}', '{{}}', '{{\"gpu_count\": 0}}', 'bench', '{nobody}'
             from generate_series(0, {all}) n, projects p;
             insert into meters (subject_id, kind, org_id, project_id, metered_until, running, correlation_id)
             select id, 'instance', org_id, project_id, date_trunc('second', engine.now()), true, 'bench' from app_instances;
             analyze",
            nobody = Uuid::nil()
        ),
    )
    .await
}

/// Gives tasks at their rate, one node after the other.
async fn give(database: &Database, given: &Given, nodes: usize, time: Duration) -> Result<(), Failure> {
    let mut due = interval(Duration::from_secs(1) / TASKS_PER_SECOND);
    let wanted = (time.as_secs_f64() * f64::from(TASKS_PER_SECOND)) as usize;
    for number in 0..wanted {
        due.tick().await;
        // A stride that meets every node before it comes back to the first.
        let node = number * 7 % nodes;
        let task = Uuid::now_v7();
        let mut conn = database.pool.acquire().await?;
        given.lock().await[node] = Some((task, Instant::now()));
        let new = NewNodeTask {
            id: task,
            node_id: id(node),
            org_id: None,
            project_id: None,
            instance_id: None,
            kind: "diag.health_probe",
            idempotency_key: &task.to_string(),
            generation: 1,
            epoch: 1,
            wakes: None,
            input: &json!({}),
            sealed: None,
            correlation_id: "bench",
            trace_id: None,
        };
        node_tasks::insert(&mut conn, &new).await?;
    }
    Ok(())
}

/// A node that waits for tasks.
struct Poll {
    node: usize,
    bearer: String,
    given: Given,
    told: mpsc::UnboundedSender<f64>,
    /// How often anybody was told to come again.
    busy: Arc<AtomicUsize>,
}

impl Poll {
    async fn for_ever(self, address: std::net::SocketAddr) -> Result<(), Failure> {
        // So many do not come in the same moment.
        sleep(Duration::from_millis(self.node as u64 % 5000)).await;
        let mut line = Line::open(address).await?;
        let own = format!("/internal/v1/nodes/{}/tasks", id(self.node));
        let wait = Target::get(address, &format!("{own}/wait?wait=30s"), &self.bearer);
        loop {
            let (answer, busy) = line.ask_until_answered(wait.request()).await?;
            self.busy.fetch_add(busy, Ordering::Relaxed);
            if answer["task"].is_null() {
                continue;
            }
            let Some((task, at)) = self.given.lock().await[self.node].take() else { continue };
            let _ = self.told.send(at.elapsed().as_secs_f64() * 1e3);
            let outcome = json!({ "status": "succeeded", "output": { "kind": "healthy", "tries": 1 } });
            let body = json!({ "idempotency_key": task.to_string(), "outcome": outcome }).to_string();
            let result = Target::post(address, &format!("{own}/{task}/result"), &self.bearer, &body);
            let (_, busy) = line.ask_until_answered(result.request()).await?;
            self.busy.fetch_add(busy, Ordering::Relaxed);
        }
    }
}

/// The beats of some nodes, one after the other, spread over the time between two of one node.
async fn beat(
    address: std::net::SocketAddr,
    nodes: Vec<usize>,
    bearers: Vec<String>,
    busy: Arc<AtomicUsize>,
) -> Result<(), Failure> {
    if nodes.is_empty() {
        return Ok(());
    }
    let mut line = Line::open(address).await?;
    let mut due = interval(BEAT / u32::try_from(nodes.len()).unwrap_or(u32::MAX));
    for sequence in 1_i64.. {
        for (node, bearer) in nodes.iter().zip(&bearers) {
            due.tick().await;
            let workloads: Vec<Value> = (0..INSTANCES)
                .map(|place| {
                    json!({
                        "instance_id": instance(*node, place), "member": "main", "generation": 1, "state": "running",
                        "health": "unknown", "usage": { "cpu_milliseconds": 1000 * sequence, "memory_bytes": 1 << 28 },
                    })
                })
                .collect();
            let body = json!({ "sequence": sequence, "agent_version": "bench", "workloads": workloads });
            let path = format!("/internal/v1/nodes/{}/heartbeat", id(*node));
            let request = Target::post(address, &path, bearer, &body.to_string());
            let (_, again) = line.ask_until_answered(request.request()).await?;
            busy.fetch_add(again, Ordering::Relaxed);
        }
    }
    Ok(())
}
