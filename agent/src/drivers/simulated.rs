//! A driver without an engine: workloads are entries in memory. It says so everywhere, and goes wrong on request, so that
//! stories can tell what happens when a node fails, hangs or loses what it had.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use domain::{LogLine, LogStream, StatusReason};
use node_protocol::{
    ControlAction, Generations, GpuUse, Image, Launched, Probe, Secrets, Usage, Workload, WorkloadState,
};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::{Driver, DriverFault, Network, Seen, Told};
use crate::tail::Tail;

/// Where simulated ports begin; nothing listens on them.
const FIRST_PORT: u16 = 40_000;
/// What a simulated GPU has of memory, halved.
const HALF_OF_ONE: u64 = 40 << 30;

/// What goes wrong, at the next launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this reason and nothing is there.
    FailNext(StatusReason),
    /// It hangs until [`Simulated::release`], or until a removal overtakes it.
    Hang,
    /// The same, while it has pulled so many bytes of so many.
    HangAfter(u64, u64),
    /// It is there, and then it is not.
    Vanish,
}

#[derive(Clone)]
pub struct Simulated {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    /// Launches told to hang wait here.
    gate: Semaphore,
}

#[derive(Default)]
struct State {
    workloads: BTreeMap<String, Seen>,
    networks: BTreeMap<Uuid, String>,
    /// Where the node is said to have an address on an instance's network.
    addressed: Vec<(Uuid, Network)>,
    /// The variables that each instance was last started with.
    given: BTreeMap<Uuid, BTreeMap<String, String>>,
    faults: VecDeque<Fault>,
    /// Instances that do not serve although they run.
    unwell: BTreeSet<Uuid>,
    /// Instances of which nobody learns what they use.
    mute: BTreeSet<Uuid>,
    /// Removals that are still to fail.
    stubborn: u32,
    /// Removals for good that are still to leave the network behind.
    careless: u32,
    /// Starts of what stands still that are still to fail.
    inert: u32,
    /// How many GPUs the machine is said to have.
    gpus: u32,
    /// How many of them each workload was given.
    given_gpus: BTreeMap<String, u32>,
    /// The digests of what was ever started and not taken away.
    images: BTreeSet<String>,
    launches: u64,
    next_port: u16,
}

impl Simulated {
    pub fn new() -> Simulated {
        let state = State { next_port: FIRST_PORT, ..State::default() };
        Simulated { inner: Arc::new(Inner { state: Mutex::new(state), gate: Semaphore::new(0) }) }
    }

    pub fn will(&self, fault: Fault) {
        self.state().faults.push_back(fault);
    }

    /// How many faults no launch has come upon yet.
    pub fn to_come(&self) -> usize {
        self.state().faults.len()
    }

    /// The next so many removals fail.
    pub fn will_keep(&self, removals: u32) {
        self.state().stubborn = removals;
    }

    /// The next so many removals for good leave the network behind.
    pub fn will_leave_behind(&self, removals: u32) {
        self.state().careless = removals;
    }

    /// The next so many starts of what stands still fail.
    pub fn will_not_start(&self, starts: u32) {
        self.state().inert = starts;
    }

    /// The machine is said to have so many GPUs, and those that workloads have are half busy.
    #[must_use]
    pub fn with_gpus(self, gpus: u32) -> Simulated {
        self.state().gpus = gpus;
        self
    }

    /// The node is said to have an address on the networks of these instances.
    #[must_use]
    pub fn with_networks(self, networks: Vec<(Uuid, Network)>) -> Simulated {
        self.state().addressed = networks;
        self
    }

    /// The digests of the images that are here.
    pub fn images(&self) -> Vec<String> {
        self.state().images.iter().cloned().collect()
    }

    /// Lets launches that hang go on.
    pub fn release(&self, launches: usize) {
        self.inner.gate.add_permits(launches);
    }

    /// How often a container was really started: doing a task twice shows here.
    pub fn launches(&self) -> u64 {
        self.state().launches
    }

    /// What a variable of the instance's newest workload says, secrets included: nobody but a story asks.
    pub fn given(&self, instance: Uuid, name: &str) -> Option<String> {
        self.state().given.get(&instance)?.get(name).cloned()
    }

    /// Its workloads go on running, or are started, and do not serve; or serve again.
    pub fn falls_ill(&self, instance: Uuid, ill: bool) {
        let mut state = self.state();
        if ill {
            state.unwell.insert(instance)
        } else {
            state.unwell.remove(&instance)
        };
    }

    /// Whoever asks what the instance uses waits for ever.
    pub fn keeps_to_itself(&self, instance: Uuid) {
        self.state().mute.insert(instance);
    }

    /// The node lost everything it had, as after a disk was replaced.
    pub fn vanish(&self) {
        let mut state = self.state();
        state.workloads.clear();
        state.networks.clear();
    }

    /// The node lost one member of an instance.
    pub fn loses(&self, instance: Uuid, member: &str) {
        self.state().workloads.retain(|_, seen| seen.instance_id != instance || seen.member != member);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Simulated {
    fn default() -> Simulated {
        Simulated::new()
    }
}

impl State {
    fn start(&mut self, workload: &Workload) -> Launched {
        let name = workload.container_name();
        if !self.workloads.contains_key(&name) {
            self.launches += 1;
            self.images.insert(workload.image.digest.clone());
            self.given_gpus.insert(name.clone(), workload.resources.gpu_count);
            let (mut ports, mut bound) = (BTreeMap::new(), BTreeMap::new());
            for port in &workload.ports {
                let host = if port.host == 0 { self.next_port } else { port.host };
                self.next_port = self.next_port.wrapping_add(1).max(FIRST_PORT);
                ports.insert(port.name.clone(), host);
                bound.insert(port.container, host);
            }
            let seen = Seen {
                instance_id: workload.instance_id,
                member: workload.member.clone(),
                generation: workload.generation,
                name: name.clone(),
                digest: workload.image.digest.clone(),
                state: WorkloadState::Running,
                ports,
                bound,
                probe: workload.probe.clone(),
            };
            self.networks.insert(workload.instance_id, Workload::network_name(workload.instance_id));
            self.workloads.insert(name.clone(), seen);
        }
        let seen = &self.workloads[&name];
        Launched {
            member: seen.member.clone(),
            container_id: format!("simulated-{name}"),
            digest: seen.digest.clone(),
            ports: seen.ports.clone(),
            serves: false,
        }
    }
}

impl Driver for Simulated {
    fn name(&self) -> &'static str {
        "simulated"
    }

    async fn network(&self, _: Uuid, _: &Workload) -> Result<Option<Network>, DriverFault> {
        Ok(None)
    }

    async fn networks(&self) -> Result<Vec<(Uuid, Network)>, DriverFault> {
        Ok(self.state().addressed.clone())
    }

    async fn launch(
        &self,
        workload: &Workload,
        secrets: &Secrets,
        told: &Told,
    ) -> Result<Launched, DriverFault> {
        let fault = self.state().faults.pop_front();
        match fault {
            Some(Fault::FailNext(reason)) => {
                return Err(DriverFault::new(reason, "the simulated node was told to fail"));
            }
            Some(Fault::Hang | Fault::HangAfter(..)) => {
                if let Some(Fault::HangAfter(done, total)) = fault {
                    told.pulled(done, total);
                }
                let passed = tokio::select! {
                    passed = self.inner.gate.acquire() => passed,
                    overtaken = told.overtaken() => return Err(overtaken),
                };
                passed.map_err(|_| DriverFault::new(StatusReason::Internal, "the gate is gone"))?.forget();
            }
            Some(Fault::Vanish) | None => {}
        }
        told.pulled(1, 1);
        let mut state = self.state();
        let launched = state.start(workload);
        let variables = workload.env.iter().chain(&secrets.env);
        let variables = variables.map(|(name, value)| (name.clone(), value.clone())).collect();
        state.given.insert(workload.instance_id, variables);
        if fault == Some(Fault::Vanish) {
            state.workloads.remove(&workload.container_name());
        }
        Ok(launched)
    }

    async fn control(
        &self,
        instance: Uuid,
        generation: i64,
        action: ControlAction,
    ) -> Result<(), DriverFault> {
        let mut state = self.state();
        if state.inert > 0 && action == ControlAction::Start {
            state.inert -= 1;
            return Err(DriverFault::new(
                StatusReason::Internal,
                "the simulated node was told not to start it",
            ));
        }
        let mut found = false;
        for seen in state.workloads.values_mut() {
            if seen.instance_id == instance && seen.generation == generation {
                found = true;
                seen.state = match action {
                    ControlAction::Stop => WorkloadState::Exited,
                    ControlAction::Start | ControlAction::Restart => WorkloadState::Running,
                };
            }
        }
        let missing = || DriverFault::new(StatusReason::Internal, "there is no such workload here");
        if found { Ok(()) } else { Err(missing()) }
    }

    async fn remove(
        &self,
        instance: Uuid,
        generations: Generations,
        for_good: bool,
    ) -> Result<Vec<String>, DriverFault> {
        let mut state = self.state();
        if state.stubborn > 0 {
            state.stubborn -= 1;
            return Err(DriverFault::new(StatusReason::Internal, "the simulated node was told to keep it"));
        }
        let meant = |seen: &Seen| seen.instance_id == instance && generations.contain(seen.generation);
        let mut gone: Vec<String> =
            state.workloads.values().filter(|seen| meant(seen)).map(|seen| seen.name.clone()).collect();
        state.workloads.retain(|_, seen| !meant(seen));
        if for_good && state.careless > 0 {
            state.careless -= 1;
        } else if for_good {
            gone.extend(state.networks.remove(&instance));
        }
        Ok(gone)
    }

    async fn seen(&self) -> Result<Vec<Seen>, DriverFault> {
        Ok(self.state().workloads.values().cloned().collect())
    }

    /// Nothing listens in a simulation; being there and not said to be ill is all there is to ask.
    async fn serves(&self, seen: &Seen, _: &Probe) -> bool {
        !self.state().unwell.contains(&seen.instance_id)
    }

    async fn usage(&self, seen: &Seen) -> Usage {
        if self.state().mute.contains(&seen.instance_id) {
            std::future::pending::<()>().await;
        }
        Usage::default()
    }

    async fn gpu_use(&self) -> Vec<GpuUse> {
        let state = self.state();
        let runs = |name: &String| {
            state.workloads.get(name).is_some_and(|seen| seen.state == WorkloadState::Running)
        };
        let taken: u32 = state.given_gpus.iter().filter(|(name, _)| runs(name)).map(|(_, gpus)| gpus).sum();
        let one = |index| {
            let (busy_percent, memory_used_bytes) = if index < taken { (50, HALF_OF_ONE) } else { (0, 0) };
            GpuUse { index, busy_percent, memory_used_bytes }
        };
        (0..state.gpus).map(one).collect()
    }

    async fn remove_image(&self, image: &Image) -> Result<bool, DriverFault> {
        let mut state = self.state();
        if state.workloads.values().any(|seen| seen.digest == image.digest) {
            return Ok(false);
        }
        state.images.remove(&image.digest);
        Ok(true)
    }

    async fn leftovers(&self, instance: Uuid) -> Result<Vec<String>, DriverFault> {
        Ok(self.state().networks.get(&instance).cloned().into_iter().collect())
    }

    async fn logs(
        &self,
        instance: Uuid,
        member: &str,
        lines: u32,
        since: Option<DateTime<Utc>>,
    ) -> Result<Tail, DriverFault> {
        let state = self.state();
        let there =
            state.workloads.values().any(|seen| seen.instance_id == instance && seen.member == member);
        let mut tail = Tail::of(lines);
        // It was said once, before anybody asked.
        if there && since.is_none() {
            let text = format!("{member}: simulated, so nothing runs");
            tail.push(LogLine { at: DateTime::UNIX_EPOCH, stream: LogStream::Stdout, text });
        }
        Ok(tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Stage, hold_to_contract};

    #[tokio::test]
    async fn the_simulated_driver_holds_the_contract() {
        let digest = format!("sha256:{}", "a".repeat(64));
        hold_to_contract(&Simulated::new(), &Stage { digest, port: 8080 }).await;
    }
}
