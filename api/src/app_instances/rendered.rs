//! `GET P/app-instances/{id}/rendered`: the Compose file that the platform made of a stack, as its containers run. What its
//! names say is secret is hidden; secrets themselves are never in it.

use api_types::RenderedInstance;
use axum::extract::State as Shared;
use domain::{ErrorCode, compose, yaml};
use store::app_instance_releases;

use super::found;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

pub(crate) fn rendered() -> Endpoint {
    Endpoint::new("get_rendered_app_instance", "The Compose file that the instance runs as", show)
        .answers::<RenderedInstance>(200, "The file, without secrets.")
        .refuses(&[ErrorCode::AppInstanceNotFound, ErrorCode::StateConflict])
}

async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Json<RenderedInstance>, ApiError> {
    params.finish()?;
    let mut tx = state.read().await?;
    let instance = found(&mut tx, &caller, id).await?;
    let rendered = app_instance_releases::rendered(&mut tx, instance.id).await?;
    tx.rollback().await?;
    let Some(rendered) = rendered else {
        let message = "Nothing is rendered: the instance is no Compose stack, or none of it was launched.";
        return Err(ApiError::new(ErrorCode::StateConflict, message)
            .with("state", instance.status)
            .with("runtime_backend", instance.runtime_backend));
    };
    Ok(Json(RenderedInstance {
        app_instance_id: instance.id,
        version: rendered.version,
        generation: rendered.generation,
        compose: yaml::document(&compose::shown(rendered.file)),
    }))
}
