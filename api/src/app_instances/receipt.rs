//! `GET P/app-instances/{id}/receipt`: that the instance left nothing behind, with all it takes to check it elsewhere.

use api_types::TeardownReceipt;
use axum::extract::State as Shared;
use domain::ErrorCode;
use node_protocol::Signed;
use store::{task_signers, teardowns};

use super::found;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

pub(crate) fn receipt() -> Endpoint {
    Endpoint::new("get_app_instance_receipt", "The signed receipt of the instance's teardown", show)
        .answers::<TeardownReceipt>(200, "The receipt.")
        .refuses(&[ErrorCode::AppInstanceNotFound, ErrorCode::StateConflict])
}

async fn show(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
) -> Result<Json<TeardownReceipt>, ApiError> {
    params.finish()?;
    let mut tx = state.read().await?;
    let instance = found(&mut tx, &caller, id).await?;
    let kept = teardowns::receipt(&mut tx, instance.id).await?;
    let (_, signers) = task_signers::all(&mut tx).await?;
    tx.rollback().await?;
    let Some(kept) = kept else {
        return Err(ApiError::new(ErrorCode::StateConflict, "There is no receipt: nothing was torn down.")
            .with("state", instance.status));
    };
    let signed: Signed = serde_json::from_value(kept).map_err(|error| ApiError::internal(&error))?;
    let signer = signers.into_iter().find(|signer| signer.key_id == signed.key_id);
    let signer = signer.ok_or_else(|| ApiError::internal(&"a receipt by a signer that is gone"))?;
    let Signed { key_id, payload, signature } = signed;
    Ok(Json(TeardownReceipt { key_id, public_key: signer.public_key, payload, signature }))
}
