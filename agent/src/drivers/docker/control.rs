//! Starting and stopping containers that are there. A host that was started anew has lost what was in its memory, so whatever of a
//! container's files is gone is there again before the container is started, or it is not started.

use bollard::models::ContainerSummary;
use bollard::query_parameters::StopContainerOptionsBuilder;
use domain::StatusReason;
use domain::container::FILES;
use node_protocol::ControlAction;
use uuid::Uuid;

use super::{Docker, STOP_SECONDS, disk, fault, scratch, seen};
use crate::drivers::{DriverFault, Seen};

impl Docker {
    pub(super) async fn act_on(
        &self,
        instance: Uuid,
        generation: i64,
        action: ControlAction,
    ) -> Result<(), DriverFault> {
        let all = self.containers(Some(instance)).await?;
        let ours = all.iter().filter_map(|container| Some((seen(container)?, container)));
        let meant: Vec<(Seen, &ContainerSummary)> =
            ours.filter(|(seen, _)| seen.generation == generation).collect();
        if meant.is_empty() {
            return Err(DriverFault::new(StatusReason::Internal, "there is no such workload here"));
        }
        for (Seen { name, .. }, container) in meant {
            if action != ControlAction::Stop {
                let kept = container.labels.as_ref().and_then(|labels| labels.get(FILES));
                let made = kept.map_or(Ok(()), |kept| scratch::restore(&name, kept));
                made.map_err(|error| disk("give the container its files again", &error))?;
            }
            let stop = StopContainerOptionsBuilder::default().t(STOP_SECONDS).build();
            let done = match action {
                ControlAction::Start => self.client.start_container(&name, None).await,
                ControlAction::Stop => self.client.stop_container(&name, Some(stop)).await,
                ControlAction::Restart => self.client.restart_container(&name, None).await,
            };
            done.map_err(|error| fault("control the container", &error))?;
        }
        Ok(())
    }
}
