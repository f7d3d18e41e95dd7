//! Pages of events, oldest first unless asked otherwise. A page holds only events that have their number, so the next one
//! misses nothing.

use axum::extract::State as Shared;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use domain::event::CloudEvent;
use domain::{CorrelationId, EventType};
use store::outbox::{self, Filter};
use utoipa::openapi::schema::KnownFormat;

use super::stream;
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_as, text_like, word, words};
use crate::error::ApiError;
use crate::json::Json;
use crate::order::Order;
use crate::paging::Paging;
use crate::params::Params;
use crate::pass::Pass;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_events", "What the project was told, oldest first, or as it happens", all)
        .query("type", words::<EventType>(), "Only events of these types, separated by commas.")
        .query("subject", word(), "Only events about this resource.")
        .query("correlation_id", text_like(CorrelationId::PATTERN), "Only what was set off under this id.")
        .query("since", text_as(KnownFormat::DateTime), "Only events of this time or later.")
        .query("order", Order::schema(), Order::DESCRIPTION)
        .header(
            "Last-Event-ID",
            "For streams: the number of the last event seen. Without it, and without `since` or `cursor`, a \
             stream begins with what is told next.",
        )
        .answers_page::<CloudEvent>("A page of events.")
        .or_streams(&["event", "reset"])
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, ApiError> {
    let order = Order::read(&mut params);
    if order.newest_first() && wants_stream(&headers) {
        params.problem("order", "cannot be newest of a stream");
    }
    let paging = Paging::<i64>::read(&mut params, order.list("ev1", "ev1n"));
    let correlation_id =
        params.parsed::<CorrelationId>("correlation_id", "1 to 128 characters of [A-Za-z0-9._:-]");
    let types: Vec<EventType> = params.list("type", "event types, separated by commas");
    let filter = Filter {
        project_id: caller.scope.project().unwrap_or_default(),
        types: types.iter().map(EventType::to_string).collect(),
        subject: params.text("subject"),
        correlation_id: correlation_id.map(String::from),
        since: params.parsed("since", "an RFC 3339 time such as 2026-01-31T12:00:00Z"),
        after: paging.after.unwrap_or_default(),
        limit: paging.rows(),
        newest_first: order.newest_first(),
    };
    params.finish()?;
    if wants_stream(&headers) {
        let pass = Pass::of(&state, caller, &headers);
        return stream::follow(state, pass, filter, paging.after, &headers).await;
    }
    let mut tx = state.read().await?;
    let events = outbox::told(&mut tx, &filter).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(events, CloudEvent::seq, |event| event)).into_response())
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted.flat_map(|value| value.split(','));
    kinds.any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/event-stream")
}
