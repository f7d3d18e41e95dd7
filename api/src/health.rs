//! What the process says of itself: that it lives, whether it should get requests, and which build it is.

use std::time::Duration;

use api_types::Version;
use axum::extract::State as Shared;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::error::ApiError;
use crate::json::Json;
use crate::state::State;

const PATIENCE: Duration = Duration::from_secs(1);

/// Alive means able to answer at all; nothing else is asked, so that a slow database never gets the process killed.
pub(crate) async fn livez() -> Json<Value> {
    Json(json!({ "status": "alive" }))
}

/// Ready means that requests sent here now will be served: not draining, and the database answers within a second.
pub(crate) async fn readyz(Shared(state): Shared<State>) -> Result<Json<Value>, ApiError> {
    if state.draining.is_cancelled() {
        return Err(ApiError::unavailable("The process is stopping."));
    }
    let answered = timeout(PATIENCE, async { state.pool.begin().await?.commit().await }).await;
    match answered {
        Ok(Ok(())) => Ok(Json(json!({ "status": "ready" }))),
        _ => Err(ApiError::unavailable("The database does not answer.")),
    }
}

pub(crate) async fn version(Shared(state): Shared<State>) -> Json<Version> {
    Json(Version {
        name: state.build.name.to_owned(),
        version: state.build.version.to_owned(),
        git: state.build.git.map(str::to_owned),
        schema: state.build.schema,
    })
}
