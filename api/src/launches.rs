//! Launches that a revocation overtakes. Each ends in the revocation's own transaction, and the run that waits for it hears why:
//! what the node did all the same is taken away by the run's undo.

use domain::StatusReason;
use engine::EngineError;
use node_protocol::Outcome;
use sqlx::PgConnection;
use store::node_tasks;
use uuid::Uuid;

use crate::error::ApiError;
use crate::state::State;

/// The launches are held and unanswered. Wake the engine after the commit.
pub(crate) async fn stop(
    state: &State,
    conn: &mut PgConnection,
    launches: &[Uuid],
    (reason, message): (StatusReason, &str),
) -> Result<(), ApiError> {
    let outcome = Outcome::Failed { reason, message: message.to_owned() };
    let outcome = serde_json::to_value(&outcome).map_err(|error| ApiError::internal(&error))?;
    for task in node_tasks::stop(conn, launches, &outcome).await? {
        let (Some(run), Some(signal)) = (task.run_id, &task.signal) else { continue };
        match state.engine.signal(conn, run, signal, &task.id.to_string(), &outcome).await {
            Ok(_) | Err(EngineError::NoSuchRun(_)) => {}
            Err(EngineError::Database(error)) => return Err(error.into()),
            Err(error) => return Err(ApiError::internal(&error)),
        }
    }
    Ok(())
}
