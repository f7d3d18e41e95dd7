//! `POST /console/logout`: the session ends, here and in every other process, before the answer leaves.

use axum::extract::State as Shared;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use domain::ActorType;
use store::{audit, console_sessions};

use super::cookie::SESSION;
use super::session::presented;
use crate::edge::Context;
use crate::error::ApiError;
use crate::state::State;

pub(super) async fn sign_out(
    Shared(state): Shared<State>,
    context: Context,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if let Some(shown) = presented(&state, &headers) {
        // Else any site could sign people out.
        shown.may(&Method::POST, &headers)?;
        let mut tx = state.write().await?;
        if let Some(user) = console_sessions::delete(&mut tx, &shown.digest()).await? {
            let entry = audit::NewEntry {
                actor_id: Some(user),
                actor_type: Some(ActorType::User.as_str()),
                action: "console_sign_out".to_owned(),
                target: format!("user:{user}"),
                ..context.entry()
            };
            audit::insert(&mut tx, &entry).await?;
        }
        tx.commit().await?;
    }
    let gone = AppendHeaders([(header::SET_COOKIE, SESSION.clear(state.console.https))]);
    Ok((StatusCode::NO_CONTENT, gone).into_response())
}
