//! Doing one task: the driver does the work, this says what became of it. Every task may be done again.

use std::path::Path;
use std::time::Duration;

use domain::manifest::SmokeTest;
use domain::{SmokeVerdict, StatusReason};
use node_protocol::{
    ComposeLaunch, Control, Envelope, Evidence, Generations, HealthProbe, Key, Launched, Outcome, Output,
    Probe, ReadLogs, Remove, Signed, Task, Workload,
};
use tokio::time::timeout;
use uuid::Uuid;

use crate::authorized_keys;
use crate::drivers::{Driver, DriverFault, Seen, Told};
use crate::health;
use crate::images::Images;
use crate::platform::{Now, Platform};
use crate::relay::Relay;
use crate::update::Updater;

/// What doing a task needs besides the driver.
pub(crate) struct Doing<'a, D> {
    pub(crate) driver: &'a D,
    pub(crate) relay: &'a Relay,
    pub(crate) platform: &'a Platform,
    pub(crate) updater: &'a Updater,
    pub(crate) images: &'a Images,
    pub(crate) key: &'a Key,
    pub(crate) task: &'a Envelope,
    pub(crate) now: &'a Now,
    pub(crate) told: &'a Told,
    /// The list of this machine's accounts.
    pub(crate) people: &'a Path,
    /// A launch waits so long for its workload to serve.
    pub(crate) serves_within: Duration,
}

impl<D: Driver> Doing<'_, D> {
    pub(crate) async fn perform(&self, task: &Task) -> Outcome {
        let done = match task {
            Task::OciLaunch(launch) => self.launch(std::slice::from_ref(&launch.workload)).await,
            Task::ComposeLaunch(ComposeLaunch { members, .. }) => self.launch(members).await,
            Task::OciControl(control) | Task::ComposeControl(control) => self.control(control).await,
            Task::OciRemove(remove) | Task::ComposeRemove(remove) => self.remove(remove).await,
            // It only waits and leaves nothing half done, so it ends wherever it is.
            Task::DiagHealthProbe(probe) => tokio::select! {
                done = self.probe(probe) => done,
                overtaken = self.told.overtaken() => Err(overtaken),
            },
            Task::DiagLogs(wanted) => self.logs(wanted).await,
            Task::SshInstallAuthorizedKeys(wanted) => {
                authorized_keys::install(wanted, self.people).map(|()| Output::KeysInstalled)
            }
            Task::AgentSelfUpdate(wanted) => {
                return self.updater.update(self.platform, self.task, wanted, self.told).await;
            }
        };
        match done {
            Ok(output) => Outcome::Succeeded { output },
            Err(DriverFault { reason, message }) => Outcome::Failed { reason, message },
        }
    }

    async fn launch(&self, members: &[Workload]) -> Result<Output, DriverFault> {
        let mut launched = Vec::new();
        for workload in members {
            let mut workload = workload.clone();
            // Listening comes first: a workload may call as soon as it runs.
            if let Some(network) = self.driver.network(self.task.node_id, &workload).await? {
                workload.env.extend(self.relay.open(network).await?);
            }
            self.images.used(&workload.image, (self.now)());
            launched.push(self.driver.launch(&workload, &self.task.secrets, self.told).await?);
        }
        for (workload, member) in members.iter().zip(&mut launched) {
            member.serves = self.serves_soon(workload, member).await;
        }
        Ok(Output::Launched { members: launched })
    }

    /// Many workloads serve as soon as they run. Seen here, that costs no task of its own.
    async fn serves_soon(&self, workload: &Workload, launched: &Launched) -> bool {
        let Some(probe) = workload.probe.as_ref().filter(|_| !self.is_simulated()) else { return false };
        let asked = workload.ports.iter().find(|port| port.container == probe.port);
        match asked.and_then(|port| launched.ports.get(&port.name)) {
            Some(port) => {
                let asked = health::until_healthy(probe, || health::serves(probe, *port));
                let asked = timeout(self.serves_within, asked).await;
                matches!(asked, Ok(Some(_)))
            }
            None => false,
        }
    }

    /// Nothing listens in a simulation: only its driver can be asked.
    fn is_simulated(&self) -> bool {
        self.driver.name() == "simulated"
    }

    async fn control(&self, control: &Control) -> Result<Output, DriverFault> {
        self.driver.control(control.instance_id, control.generation, control.action).await?;
        Ok(Output::Controlled)
    }

    /// What went is told by the driver; what is left, by a fresh look. Evidence is only of a removal that left nothing.
    async fn remove(&self, remove: &Remove) -> Result<Output, DriverFault> {
        let Remove { instance_id, generations, for_good } = *remove;
        let removed = self.driver.remove(instance_id, generations, for_good).await?;
        let remaining = self.remaining(instance_id, generations, for_good).await?;
        if !remaining.is_empty() {
            let message = format!("still there after the removal: {}", remaining.join(", "));
            return Err(DriverFault::new(StatusReason::Internal, message));
        }
        let evidence = Evidence {
            node_id: self.task.node_id,
            instance_id,
            task_id: self.task.task_id,
            generations,
            driver: self.driver.name().to_owned(),
            removed,
            remaining,
            observed_at: (self.now)(),
        };
        let signed = Signed::sign(&evidence, self.key);
        let evidence = signed.map_err(|fault| DriverFault::new(StatusReason::Internal, fault.to_string()))?;
        Ok(Output::Removed { evidence })
    }

    async fn remaining(
        &self,
        instance: Uuid,
        generations: Generations,
        for_good: bool,
    ) -> Result<Vec<String>, DriverFault> {
        let seen = self.driver.seen().await?;
        let meant = seen
            .into_iter()
            .filter(|seen| seen.instance_id == instance && generations.contain(seen.generation));
        let mut remaining: Vec<String> = meant.map(|seen| seen.name).collect();
        if for_good {
            remaining.extend(self.driver.leftovers(instance).await?);
        }
        Ok(remaining)
    }

    async fn logs(&self, wanted: &ReadLogs) -> Result<Output, DriverFault> {
        let ReadLogs { instance_id, member, tail, since } = wanted;
        let (lines, truncated) = self.driver.logs(*instance_id, member, *tail, *since).await?.into_parts();
        Ok(Output::Logs { lines, truncated })
    }

    /// First until it serves, where there is something to ask; then the version's own tests, where there are any.
    async fn probe(&self, wanted: &HealthProbe) -> Result<Output, DriverFault> {
        let HealthProbe { instance_id, member, generation, probe, requests } = wanted;
        let seen = self.driver.seen().await?.into_iter().find(|seen| {
            seen.instance_id == *instance_id && seen.member == *member && seen.generation == *generation
        });
        let gone =
            || DriverFault::new(StatusReason::ReadinessTimeout, "the workload is not there to be asked");
        let seen = seen.ok_or_else(gone)?;
        let tries = match probe {
            Some(probe) => self.until_healthy(&seen, probe).await?,
            None => 0,
        };
        if requests.is_empty() {
            return Ok(Output::Healthy { tries });
        }
        let mut verdicts = Vec::new();
        for test in requests {
            verdicts.push(if self.is_simulated() { unasked(test) } else { asked(test, &seen).await });
        }
        Ok(Output::Asked { requests: verdicts })
    }

    async fn until_healthy(&self, seen: &Seen, probe: &Probe) -> Result<u32, DriverFault> {
        // An engine binds no ports of what does not run.
        let is_asked = self.is_simulated() || seen.asked_on(Some(probe.port)).is_some();
        let trouble = if is_asked {
            match health::until_healthy(probe, || self.driver.serves(seen, probe)).await {
                Some(tries) => return Ok(tries),
                None => format!("it did not serve within {} s", probe.grace_seconds),
            }
        } else {
            "the workload has no port to be asked on".to_owned()
        };
        // What it wrote may hold its secrets, and this goes into rows, events and webhooks.
        let message = format!("{trouble}; `gpuaas logs -f` shows what it writes while it starts");
        Err(DriverFault::new(StatusReason::ReadinessTimeout, message))
    }
}

async fn asked(test: &SmokeTest, seen: &Seen) -> SmokeVerdict {
    match seen.asked_on(test.port) {
        Some(port) => health::ask(test, port).await,
        None => {
            let message = Some("could not be asked: the workload has no such port".to_owned());
            SmokeVerdict { name: test.name.clone(), passed: false, status: None, message }
        }
    }
}

/// It passes, and says what that is worth.
fn unasked(test: &SmokeTest) -> SmokeVerdict {
    let message = Some("was not asked: this node only simulates".to_owned());
    SmokeVerdict { name: test.name.clone(), passed: true, status: None, message }
}
