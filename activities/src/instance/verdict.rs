//! How an operation on an instance ended, in words: for the instance itself, and for the canary its version may be in.

use domain::StatusReason;
use domain::event::Thread;
use domain::version_status::VersionStatus;
use engine::Fault;
use node_protocol::Outcome;
use sqlx::PgConnection;
use store::app_instances::{self, Why};
use store::canary_samples::{self, Outcome as Sample};
use store::{app_instance_heartbeats, app_versions, node_tasks};
use uuid::Uuid;

/// What a step noted, or else what became of the run's tasks. That the node was lost for a while says nothing against a task
/// that it answered.
pub async fn why(conn: &mut PgConnection, instance: Uuid, run: Uuid) -> Result<Why, Fault> {
    let noted = match app_instances::find(conn, instance).await? {
        Some(instance) => instance.reason()?.zip(instance.status_message),
        None => None,
    };
    let noted = noted.map(|(reason, message)| Why { reason, message });
    let lost = match noted {
        Some(noted) if noted.reason != StatusReason::NodeUnreachable => return Ok(noted),
        lost => lost,
    };
    for task in node_tasks::of_run(conn, run).await? {
        let outcome = task.result.as_ref().and_then(|result| serde_json::from_value(result.clone()).ok());
        match outcome {
            Some(Outcome::Failed { reason, message }) => return Ok(Why { reason, message }),
            Some(Outcome::Refused { refusal }) => {
                let message = format!("the node refused the task: {refusal}");
                return Ok(Why { reason: StatusReason::TaskRejected, message });
            }
            None if !task.status()?.is_finished() => {
                let message = "the node did not answer in time".to_owned();
                return Ok(Why { reason: StatusReason::NodeUnreachable, message });
            }
            _ => {}
        }
    }
    if let Some(lost) = lost {
        return Ok(lost);
    }
    if app_instance_heartbeats::is_awaited_by(conn, run).await? {
        let message = "the workload did not send a heartbeat in time".to_owned();
        return Ok(Why { reason: StatusReason::ReadinessTimeout, message });
    }
    let message = format!("the operation did not come to its end; workflow {run} tells why");
    Ok(Why { reason: StatusReason::Internal, message })
}

/// Counts the run for the canary of the version it brought, the instance's own unless said otherwise, if that is in one.
/// Call it before the instance is held: versions are locked first.
pub async fn tell_canary(
    conn: &mut PgConnection,
    instance: Uuid,
    number: Option<&str>,
    (run_id, thread): (Uuid, Thread<'_>),
    failed: bool,
) -> Result<(), Fault> {
    let Some(instance) = app_instances::find(conn, instance).await? else { return Ok(()) };
    let number = number.unwrap_or(&instance.version);
    let Some(version) = app_versions::find(conn, &instance.app_slug, number).await? else { return Ok(()) };
    if version.status == VersionStatus::Canary {
        let project_id = instance.project_id;
        let sample = Sample { run_id, project_id, failed, thread };
        canary_samples::record(conn, version.id, sample).await?;
    }
    Ok(())
}
