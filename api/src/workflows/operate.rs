//! `POST …/workflows/{id}/retry|resume|pause|cancel`: an operator asks, the engine decides, one transaction.

use std::time::Duration;

use api_types::{Operate, Operated};
use axum::Json;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use engine::{Asker, Engine, OperateError, RunHandle, inspect};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{find, present, show};
use crate::body::Body;
use crate::edge::Context;
use crate::endpoint::{Endpoint, text};
use crate::error::ApiError;
use crate::etag::{self, IfMatch};
use crate::params::Params;
use crate::scope::{RunId, Scope};
use crate::state::State;
use crate::wait;

pub(crate) fn retry() -> Endpoint {
    endpoint(
        Verb::Retry,
        "retry_workflow",
        "Retry from the failed step; a finished run is tried again as a new one",
    )
}

pub(crate) fn resume() -> Endpoint {
    endpoint(Verb::Resume, "resume_workflow", "Let a paused or stuck run go on")
}

pub(crate) fn pause() -> Endpoint {
    endpoint(Verb::Pause, "pause_workflow", "Stop a run at its next safe point")
}

pub(crate) fn cancel() -> Endpoint {
    endpoint(Verb::Cancel, "cancel_workflow", "Stop a run and undo what it did")
}

#[derive(Clone, Copy)]
enum Verb {
    Retry,
    Resume,
    Pause,
    Cancel,
}

impl Verb {
    async fn ask(
        self,
        engine: &Engine,
        conn: &mut PgConnection,
        run: Uuid,
        asker: &Asker,
    ) -> Result<RunHandle, OperateError> {
        match self {
            Verb::Retry => engine.retry(conn, run, asker).await,
            Verb::Resume => engine.resume(conn, run, asker).await,
            Verb::Pause => engine.pause(conn, run, asker).await,
            Verb::Cancel => engine.cancel(conn, run, asker).await,
        }
    }
}

fn endpoint(verb: Verb, name: &'static str, summary: &'static str) -> Endpoint {
    Endpoint::new(name, summary, move |state, request: Request, body| operate(verb, state, request, body))
        .query("wait", text(), "Hold the answer until the run settles, at most 60s; e.g. `30s`.")
        .header("If-Match", "Only if the run still has this tag.")
        .body::<Operate>()
        .answers::<Operated>(202, "Asked; `Location` is where to follow the run.")
        .answers::<Operated>(200, "With `wait`: the run has settled; `workflow.status` says how.")
        .refuses(&[ErrorCode::WorkflowNotFound, ErrorCode::StateConflict, ErrorCode::PreconditionFailed])
}

/// What all four verbs read from a request before its body.
type Request = (Scope, RunId, Context, IfMatch, Params);

async fn operate(
    verb: Verb,
    Shared(state): Shared<State>,
    (scope, RunId(id), context, if_match, mut params): Request,
    Body(body): Body<Operate>,
) -> Result<Response, ApiError> {
    let wait = wait::asked(&mut params);
    params.finish()?;
    let mut tx = state.write().await?;
    find(&mut tx, scope, id).await?;
    require(&state, &mut tx, scope, id, &if_match).await?;
    let asked = verb.ask(&state.engine, &mut tx, id, &context.asker(body.reason)).await?;
    tx.commit().await?;
    state.engine.wake();
    answer(&state, scope, asked.id, wait).await
}

/// The tag is compared while the run is held still, so that it is still true when the engine acts.
async fn require(
    state: &State,
    conn: &mut PgConnection,
    scope: Scope,
    id: Uuid,
    if_match: &IfMatch,
) -> Result<(), ApiError> {
    if *if_match == IfMatch::Absent {
        return Ok(());
    }
    inspect::lock(conn, id).await?;
    let current = show::representation(state, conn, scope, id).await?;
    let bytes = serde_json::to_vec(&current).map_err(|error| ApiError::internal(&error))?;
    let tag = etag::tag(&bytes);
    if if_match.holds(&tag) {
        return Ok(());
    }
    Err(ApiError::plain(ErrorCode::PreconditionFailed).with("etag", tag))
}

/// The run as it stands after the act, or, with `?wait=`, once it has settled.
async fn answer(
    state: &State,
    scope: Scope,
    run: Uuid,
    wait: Option<Duration>,
) -> Result<Response, ApiError> {
    let settled = match wait {
        Some(wait) => wait::until_settled(state, run, wait).await?,
        None => false,
    };
    let mut tx = state.read().await?;
    let run = present::run(find(&mut tx, scope, run).await?);
    tx.rollback().await?;
    let workflow = present::handle_of(&run, scope);
    let location = (header::LOCATION, workflow.href.clone());
    let body = Json(Operated { run, workflow });
    if settled {
        return Ok((StatusCode::OK, [location], body).into_response());
    }
    Ok((StatusCode::ACCEPTED, [location, (header::RETRY_AFTER, "1".to_owned())], body).into_response())
}
