//! `POST A/allocations/{id}/release`: takes an allocation back. While instances stand on it, that is refused with their
//! names: they are decommissioned first. Asking again changes nothing.

use api_types::{Allocation, Operate};
use axum::response::Response;
use domain::{AllocationStatus, ErrorCode};
use serde_json::json;
use store::{allocations as table, app_instances};

use super::shown;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;

pub(crate) fn release() -> Endpoint {
    Endpoint::new("release_allocation", "Take an allocation back", take_back)
        .header("If-Match", "Only if the allocation still has this tag.")
        .body::<Operate>()
        .answers::<Allocation>(200, "The allocation, released; `ETag` tags it.")
        .refuses(&[ErrorCode::AllocationNotFound, ErrorCode::PreconditionFailed, ErrorCode::StateConflict])
}

async fn take_back(id: Id, if_match: IfMatch, mut change: Mutation<Operate>) -> Result<Response, ApiError> {
    let missing = ErrorCode::AllocationNotFound;
    let found = table::find_locked(&mut change.tx, id.or(missing)?).await?;
    let before = shown(found.ok_or_else(|| ApiError::plain(missing))?)?;
    if_match.require(&before)?;
    if before.status != AllocationStatus::Released {
        let instances = app_instances::on_allocation(&mut change.tx, before.id).await?;
        if !instances.is_empty() {
            let message = "Instances stand on the allocation; decommission them first.";
            return Err(ApiError::new(ErrorCode::StateConflict, message)
                .with("state", before.status.as_str())
                .with("instances", json!(instances)));
        }
        let releasing = AllocationStatus::Releasing;
        if before.status != releasing {
            table::move_to(&mut change.tx, before.id, before.status, releasing).await?;
        }
        table::move_to(&mut change.tx, before.id, releasing, AllocationStatus::Released).await?;
    }
    let after = table::find_locked(&mut change.tx, before.id).await?;
    let after = shown(after.ok_or_else(|| ApiError::plain(missing))?)?;
    let reason = change.body.reason.take();
    let told = Change::of("allocation", after.id).from(&before).to(&after).because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}
