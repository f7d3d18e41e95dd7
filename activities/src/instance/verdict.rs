//! How an operation on an instance ended, in words: for the instance itself, and for the canary its version may be in.

use domain::StatusReason;
use domain::event::Thread;
use domain::version_status::VersionStatus;
use engine::Fault;
use node_protocol::Progress;
use sqlx::PgConnection;
use store::app_instances::{self, Why};
use store::canary_samples::{self, Outcome as Sample};
use store::runs::{self, RunError};
use store::{app_instance_heartbeats, app_versions, node_tasks};
use uuid::Uuid;

/// What a step noted, or else what the run turned back with. What its tasks came to says less: the undo ends those that were still
/// open. That the node was lost for a while says nothing against a task that it answered.
pub async fn why(conn: &mut PgConnection, instance: Uuid, run: Uuid) -> Result<Why, Fault> {
    let lost = match noted(conn, instance).await? {
        Some(noted) if noted.reason != StatusReason::NodeUnreachable => return Ok(noted),
        lost => lost,
    };
    let turned = runs::error(conn, run).await?;
    let reason = turned.as_ref().and_then(|error| error.code.parse().ok());
    match (reason, turned, lost) {
        (Some(StatusReason::NodeUnreachable) | None, _, Some(lost)) => Ok(lost),
        (Some(StatusReason::NodeUnreachable), Some(error), None) => silence(conn, run, error).await,
        (Some(reason), Some(RunError { message, .. }), _) => Ok(Why { reason, message }),
        (_, turned, _) => Ok(unforeseen(turned)),
    }
}

async fn noted(conn: &mut PgConnection, instance: Uuid) -> Result<Option<Why>, Fault> {
    let Some(instance) = app_instances::find(conn, instance).await? else { return Ok(None) };
    let noted = instance.reason()?.zip(instance.status_message);
    Ok(noted.map(|(reason, message)| Why { reason, message }))
}

/// Nothing was heard in time, of what the run waited for last.
async fn silence(conn: &mut PgConnection, run: Uuid, error: RunError) -> Result<Why, Fault> {
    if app_instance_heartbeats::is_awaited_by(conn, run).await? {
        let message = "the workload did not send a heartbeat in time".to_owned();
        return Ok(Why { reason: StatusReason::ReadinessTimeout, message });
    }
    if let Some(Progress { bytes_done, bytes_total, .. }) = pulling(conn, run).await? {
        let message =
            format!("the image was not pulled in time: {bytes_done} of {bytes_total} bytes were there");
        return Ok(Why { reason: StatusReason::ImagePullFailed, message });
    }
    Ok(Why { reason: StatusReason::NodeUnreachable, message: error.message })
}

/// How far the run's launch was with its image, where that is what the run asked for last.
async fn pulling(conn: &mut PgConnection, run: Uuid) -> Result<Option<Progress>, Fault> {
    let last = node_tasks::of_run(conn, run).await?.into_iter().next();
    let launch = last.filter(|task| matches!(task.kind.as_str(), "oci.launch" | "compose.launch"));
    let told = launch.and_then(|task| serde_json::from_value(task.progress?).ok());
    Ok(told.filter(|told: &Progress| told.bytes_done < told.bytes_total))
}

/// What is on no list of reasons is told in the run's own words, which hold no secret.
fn unforeseen(turned: Option<RunError>) -> Why {
    let message = match turned {
        Some(error) => format!("the operation did not come to its end: {}", error.message),
        None => "the operation was cancelled before it came to its end".to_owned(),
    };
    Why { reason: StatusReason::Internal, message }
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
