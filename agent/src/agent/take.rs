//! One task, from its signature to what is told of it.

use std::convert::Infallible;
use std::time::Duration;

use node_protocol::{Envelope, Outcome, Output, Progress, Refusal, Remove, Signed, Task, TaskFault};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::Inner;
use crate::drivers::{Driver, DriverFault, Told};
use crate::execute::Doing;
use crate::hands::Hand;
use crate::journal::{JournalFault, Verdict};

/// News of a task wait so long for more, to be told together: what all tasks tell counts among the node's requests.
const NEWS: Duration = Duration::from_secs(5);

impl<D: Driver> Inner<D> {
    /// Believes, judges, does and tells one task.
    pub(super) async fn take(&self, signed: Signed) {
        let task = match self.believe(&signed) {
            // A signer that this node has not heard of yet may have taken over since its last report.
            Err(Refusal::UnknownSigner) => {
                self.report().await;
                self.believe(&signed)
            }
            judged => judged,
        };
        let task = match task {
            Ok(task) => task,
            // Nobody of ours asked, so nobody is answered.
            Err(refusal) => return tracing::error!(%refusal, "a task that is not the platform's was dropped"),
        };
        let span = tracing::info_span!(
            "task",
            task_id = %task.task_id,
            kind = task.kind,
            correlation_id = task.correlation_id,
            app_instance_id = task.instance_id.map(tracing::field::display),
        );
        self.see_to(&task).instrument(span).await;
    }

    fn believe(&self, signed: &Signed) -> Result<Envelope, Refusal> {
        Envelope::open(signed, &self.keyring(), self.platform.node_id())
    }

    async fn see_to(&self, task: &Envelope) {
        if Task::only_looks(&task.kind) {
            return self.look(task).await;
        }
        let Some(hand) = self.hands.take(task) else {
            return tracing::debug!("a task that is in hand was handed out again");
        };
        let (told, news) = Told::new(hand.overtaken.clone());
        let outcome = match task.in_time((self.now)()) {
            Ok(()) => tokio::select! {
                outcome = self.in_turn(task, &hand, &told) => outcome,
                never = self.keep_lease(task, news) => match never {},
            },
            Err(refusal) => Ok(Outcome::Refused { refusal }),
        };
        match outcome {
            Ok(outcome) => {
                tracing::info!(outcome = outcome.status().as_str(), "a task was seen to");
                if matches!(outcome, Outcome::Succeeded { output: Output::Healthy { .. } }) {
                    // A report comes first: whoever learns that it serves finds it healthy.
                    self.report().await;
                }
                self.tell(task.task_id, &task.idempotency_key, &outcome).await;
            }
            // Without its journal the agent does nothing: it could not know what it did.
            Err(fault) => tracing::error!(%fault, task = %task.task_id, "the journal cannot be written"),
        }
    }

    /// A look waits for no other task and leaves nothing in the journal. Whoever asked waits for it now, so it is told once.
    async fn look(&self, envelope: &Envelope) {
        let refused = |refusal| Outcome::Refused { refusal };
        let outcome = match (envelope.in_time((self.now)()), Task::read(&envelope.kind, &envelope.input)) {
            (Err(refusal), _) => refused(refusal),
            (_, Err(_)) => refused(Refusal::BadInput),
            (Ok(()), Ok(task)) => {
                let (told, _) = Told::new(CancellationToken::new());
                self.perform(envelope, &task, &told).await
            }
        };
        let told = self.platform.result(envelope.task_id, &envelope.idempotency_key, &outcome).await;
        if let Err(fault) = told {
            tracing::debug!(%fault, task = %envelope.task_id, "nobody waits for this look any more");
        }
    }

    /// Time was judged when the task came: waiting for its turn does not make it late. A removal is written down, and whatever
    /// it makes pointless is told so, before it waits.
    async fn in_turn(
        &self,
        envelope: &Envelope,
        hand: &Hand<'_>,
        told: &Told,
    ) -> Result<Outcome, JournalFault> {
        let refused = |refusal| Ok(Outcome::Refused { refusal });
        let task = match Task::read(&envelope.kind, &envelope.input) {
            Ok(task) => task,
            Err(TaskFault::UnknownKind(_)) => return refused(Refusal::UnknownKind),
            Err(TaskFault::BadInput { .. }) => return refused(Refusal::BadInput),
        };
        let removal = match &task {
            Task::OciRemove(remove) | Task::ComposeRemove(remove) => Some(remove),
            _ => None,
        };
        let mut turn = None;
        if removal.is_none() {
            turn = Some(hand.turn.lock().await);
        }
        match self.journal.admit(envelope, needed(&task))? {
            Verdict::Refuse(refusal) => return refused(refusal),
            Verdict::Known(outcome) => return Ok(outcome),
            Verdict::Do => {}
        }
        if let Some(Remove { instance_id, generations, .. }) = removal {
            self.journal.bury(*instance_id, *generations)?;
            self.hands.overtake(*instance_id, *generations);
            turn = Some(hand.turn.lock().await);
        }
        // A probe waits for hours if need be, and changes nothing: whoever comes after it does not wait for it.
        if matches!(task, Task::DiagHealthProbe(_)) {
            turn = None;
        }
        let outcome = self.perform(envelope, &task, told).await;
        self.journal.finish(&envelope.idempotency_key, &outcome)?;
        drop(turn);
        Ok(outcome)
    }

    async fn perform(&self, envelope: &Envelope, task: &Task, told: &Told) -> Outcome {
        let place = match self.places.of(task, told).await {
            Ok(place) => place,
            Err(DriverFault { reason, message }) => return Outcome::Failed { reason, message },
        };
        let doing = Doing {
            driver: &*self.driver,
            relay: &self.relay,
            platform: &self.platform,
            updater: &self.updater,
            images: &self.images,
            key: &self.key,
            task: envelope,
            now: &self.now,
            told,
            people: &self.settings.people,
            serves_within: self.settings.serves_within,
        };
        let outcome = doing.perform(task).await;
        drop(place);
        outcome
    }

    /// Telling of progress keeps the lease, while a task waits for its turn too; a third of it leaves room for two that get
    /// lost.
    async fn keep_lease(&self, envelope: &Envelope, mut news: watch::Receiver<(u64, u64)>) -> Infallible {
        let every = Duration::from_secs(u64::from(envelope.lease_seconds.max(3)) / 3);
        loop {
            let ripe = async {
                let _ = news.changed().await;
                sleep(NEWS).await;
            };
            // With news or without, the lease is kept.
            let _ = timeout(every, ripe).await;
            let (bytes_done, bytes_total) = *news.borrow_and_update();
            let progress = Progress::of_bytes(bytes_done, bytes_total);
            if let Err(fault) = self.platform.progress(envelope.task_id, &progress).await {
                tracing::debug!(%fault, "progress could not be told");
            }
        }
    }
}

/// The generation whose workload must not have been removed for the task to make sense.
fn needed(task: &Task) -> Option<i64> {
    match task {
        Task::OciLaunch(launch) => Some(launch.workload.generation),
        Task::ComposeLaunch(launch) => launch.members.iter().map(|member| member.generation).min(),
        Task::OciControl(control) | Task::ComposeControl(control) => Some(control.generation),
        Task::DiagHealthProbe(probe) => Some(probe.generation),
        Task::OciRemove(_)
        | Task::ComposeRemove(_)
        | Task::DiagLogs(_)
        | Task::SshInstallAuthorizedKeys(_)
        | Task::AgentSelfUpdate(_) => None,
    }
}
