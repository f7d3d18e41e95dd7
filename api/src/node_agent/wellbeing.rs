//! How the instances of a node are, by its report: what of them speaks for itself is judged here, and an instance that runs
//! and does not serve says so until it does.

use node_protocol::{Health, WorkloadReport, WorkloadState};
use sqlx::PgConnection;
use store::app_instance_heartbeats;
use store::app_instances::{self, Serving};
use uuid::Uuid;

use crate::error::ApiError;

/// Where health is a heartbeat, the workload calls the platform and its node has nothing to ask.
pub(super) async fn of_those_who_speak(
    conn: &mut PgConnection,
    node: Uuid,
    workloads: &mut [WorkloadReport],
) -> Result<(), ApiError> {
    for speaker in app_instance_heartbeats::speakers_on(conn, node).await? {
        let own = workloads.iter_mut().filter(|workload| {
            workload.instance_id == speaker.instance_id && workload.generation == speaker.generation
        });
        for workload in own.filter(|workload| workload.health == Health::Unknown) {
            workload.health = if speaker.speaks { Health::Healthy } else { Health::Unhealthy };
        }
    }
    Ok(())
}

pub(super) async fn note(
    conn: &mut PgConnection,
    node: Uuid,
    workloads: &[WorkloadReport],
) -> Result<(), ApiError> {
    for serving in app_instances::serving_on(conn, node).await? {
        let own = || workloads.iter().filter(|workload| is_of(workload, &serving));
        match Health::of(own().map(|workload| workload.health)) {
            Health::Unhealthy if !serving.unwell => {
                let message = trouble(own().find(|workload| workload.health == Health::Unhealthy));
                app_instances::tell_whether_it_serves(conn, serving.id, Some(&message)).await?;
            }
            Health::Healthy | Health::Unknown if serving.unwell && own().next().is_some() => {
                app_instances::tell_whether_it_serves(conn, serving.id, None).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_of(workload: &WorkloadReport, serving: &Serving) -> bool {
    workload.instance_id == serving.id && workload.generation == serving.generation
}

fn trouble(unwell: Option<&WorkloadReport>) -> String {
    let Some(WorkloadReport { member, state, .. }) = unwell else { return String::new() };
    match state {
        WorkloadState::Restarting => format!("{member} ends by itself and is started again and again"),
        WorkloadState::Exited => format!("{member} stands still"),
        WorkloadState::Created | WorkloadState::Running => {
            format!("{member} does not answer its health check")
        }
    }
}
