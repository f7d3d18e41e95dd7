//! How much an agent has in hand and does at once. Whatever the platform has is fetched, so that no task waits behind one of another
//! tenant that hangs; what weighs on the machine then takes a place among its own kind.
//!
//! A place is taken after the instance's turn and never the other way round, so nobody who has one waits for somebody who wants one.

use std::sync::Arc;

use node_protocol::Task;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::Settings;
use crate::drivers::{DriverFault, Told};

pub(super) struct Places {
    in_hand: Arc<Semaphore>,
    launches: Semaphore,
    changes: Semaphore,
    looks: Semaphore,
}

impl Places {
    pub(super) fn new(settings: &Settings) -> Places {
        let of_a_kind = || Semaphore::new(settings.at_once);
        Places {
            in_hand: Arc::new(Semaphore::new(settings.in_hand)),
            launches: of_a_kind(),
            changes: of_a_kind(),
            looks: of_a_kind(),
        }
    }

    /// Until there is room for one more task.
    pub(super) async fn one_more(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.in_hand).acquire_owned().await.ok()
    }

    /// Until others of the task's kind have ended. A launch waits for pulls, which may take long, so it ends when it is overtaken;
    /// the others wait for what ends by itself. A probe only waits itself, and tasks of the node are few: they need no place.
    pub(super) async fn of(
        &self,
        task: &Task,
        told: &Told,
    ) -> Result<Option<SemaphorePermit<'_>>, DriverFault> {
        let place = match task {
            Task::OciLaunch(_) | Task::ComposeLaunch(_) => tokio::select! {
                place = self.launches.acquire() => place,
                overtaken = told.overtaken() => return Err(overtaken),
            },
            Task::OciControl(_) | Task::ComposeControl(_) | Task::OciRemove(_) | Task::ComposeRemove(_) => {
                self.changes.acquire().await
            }
            Task::DiagLogs(_) => self.looks.acquire().await,
            Task::DiagHealthProbe(_) | Task::SshInstallAuthorizedKeys(_) | Task::AgentSelfUpdate(_) => {
                return Ok(None);
            }
        };
        // Nobody closes them.
        Ok(place.ok())
    }
}
