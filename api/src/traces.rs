//! `GET /api/v1/trace/{correlation_id}`: everything that was set off under one id, as one timeline.
//!
//! Callers choose these ids, so an id is not unique and grants nothing: each entry is told only to whom its own route
//! would tell it, and where nothing is left there is no trace.

mod moment;
mod timeline;

use api_types::{Page, TraceEntry};
use axum::extract::{Path, State as Shared};
use domain::{CorrelationId, ErrorCode};

use self::moment::Moment;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::state::State;

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_trace", "Everything that was set off under one correlation id, in order", trace)
        .answers_page::<TraceEntry>("A page of the timeline.")
        .refuses(&[ErrorCode::TraceNotFound])
}

async fn trace(
    Shared(state): Shared<State>,
    caller: Caller,
    Path(id): Path<String>,
    mut params: Params,
) -> Result<Json<Page<TraceEntry>>, ApiError> {
    let paging = Paging::<Moment>::read(&mut params, "tr1");
    params.finish()?;
    let missing = || ApiError::plain(ErrorCode::TraceNotFound);
    let id = CorrelationId::try_from(id).map_err(|_| missing())?;
    let mut tx = state.read().await?;
    let entries =
        timeline::entries(&mut tx, caller.principal(), &id, paging.after.as_ref(), paging.rows()).await?;
    tx.rollback().await?;
    if entries.is_empty() && paging.after.is_none() {
        return Err(missing());
    }
    Ok(Json(paging.page(entries, Moment::of, |entry| entry)))
}
