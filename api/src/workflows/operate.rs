//! `POST …/workflows/{id}/retry|resume|pause|cancel`: an operator asks, the engine decides, one transaction.

use api_types::{Operate, Operated, Resume};
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, Scope};
use engine::inspect::{self, RunView};
use engine::{Asker, Engine, OperateError, RunHandle};
use serde::de::DeserializeOwned;
use serde_json::json;
use sqlx::PgConnection;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{find, present, show};
use crate::endpoint::{Endpoint, text_like};
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::json::Json;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::RunId;
use crate::state::State;
use crate::wait::{self, Wait};

pub(crate) fn retry() -> Endpoint {
    endpoint::<Operate>(
        Verb::Retry,
        "retry_workflow",
        "Retry from the failed step; a finished run is tried again as a new one",
    )
}

pub(crate) fn resume() -> Endpoint {
    endpoint::<Resume>(
        Verb::Resume,
        "resume_workflow",
        "Let a paused or stuck run go on; with `force`, take one from an owner that has been silent for long",
    )
}

pub(crate) fn pause() -> Endpoint {
    endpoint::<Operate>(Verb::Pause, "pause_workflow", "Stop a run at its next safe point")
}

pub(crate) fn cancel() -> Endpoint {
    endpoint::<Operate>(Verb::Cancel, "cancel_workflow", "Stop a run and undo what it did")
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
        force: bool,
    ) -> Result<RunHandle, OperateError> {
        match self {
            Verb::Retry => engine.retry(conn, run, asker).await,
            Verb::Resume if force => engine.force(conn, run, asker).await,
            Verb::Resume => engine.resume(conn, run, asker).await,
            Verb::Pause => engine.pause(conn, run, asker).await,
            Verb::Cancel => engine.cancel(conn, run, asker).await,
        }
    }
}

/// What bodies of all verbs come to: a reason, and whether to take the run from its owner.
trait Asked: DeserializeOwned + ToSchema + Default + Send + 'static {
    fn asked(self) -> (Option<String>, bool);
}

impl Asked for Operate {
    fn asked(self) -> (Option<String>, bool) {
        (self.reason, false)
    }
}

impl Asked for Resume {
    fn asked(self) -> (Option<String>, bool) {
        (self.reason, self.force)
    }
}

fn endpoint<B: Asked>(verb: Verb, name: &'static str, summary: &'static str) -> Endpoint {
    Endpoint::new(name, summary, move |state, request: Request, change: Mutation<B>| {
        operate(verb, state, request, change)
    })
    .query(
        "wait",
        text_like(wait::PATTERN),
        "Hold the answer until the run settles, at most 60s; e.g. `30s`.",
    )
    .header("If-Match", "Only if the run still has this tag.")
    .body::<B>()
    .answers::<Operated>(202, "Asked; `Location` is where to follow the run.")
    .answers::<Operated>(200, "With `wait`: the run has settled; `workflow.status` says how.")
    .refuses(&[
        ErrorCode::WorkflowNotFound,
        ErrorCode::StateConflict,
        ErrorCode::OperationInProgress,
        ErrorCode::PreconditionFailed,
    ])
}

/// What all four verbs read from a request before its body.
type Request = (RunId, IfMatch, Wait);

async fn operate<B: Asked>(
    verb: Verb,
    Shared(state): Shared<State>,
    (RunId(id), if_match, Wait(wait)): Request,
    mut change: Mutation<B>,
) -> Result<Response, ApiError> {
    let scope = change.caller.scope;
    let before = find(&mut change.tx, scope, id).await?.state;
    require(&state, &mut change.tx, scope, id, &if_match).await?;
    let (reason, force) = std::mem::take(&mut change.body).asked();
    let asker = change.caller.asker(reason.clone());
    let asked = verb.ask(&state.engine, &mut change.tx, id, &asker, force).await?;
    let run = find(&mut change.tx, scope, asked.id).await?;
    let told = Change::of("workflow", asked.id)
        .owned_by(run.org_id, run.project_id)
        .from(&json!({ "id": id, "status": present::status(before) }))
        .to(&json!({ "id": asked.id, "status": present::status(run.state) }))
        .because(reason);
    let answer = change.commit(told, accepted(run, scope)?).await?;
    state.engine.wake();
    match wait {
        Some(wait) if wait::until_settled(&state, asked.id, wait).await? => {
            settled(&state, scope, asked.id).await
        }
        _ => Ok(answer),
    }
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
    if_match.require(&show::representation(state, conn, scope, id).await?)
}

/// The run as it stands after the act, and where to follow it.
fn accepted(run: RunView, scope: Scope) -> Result<Answer, ApiError> {
    let body = operated(run, scope);
    let location = body.workflow.href.clone();
    Ok(Answer::json(StatusCode::ACCEPTED, &body)?
        .with(header::LOCATION, location)
        .with(header::RETRY_AFTER, "1".to_owned()))
}

async fn settled(state: &State, scope: Scope, run: Uuid) -> Result<Response, ApiError> {
    let mut tx = state.read().await?;
    let body = operated(find(&mut tx, scope, run).await?, scope);
    tx.rollback().await?;
    Ok(([(header::LOCATION, body.workflow.href.clone())], Json(body)).into_response())
}

fn operated(run: RunView, scope: Scope) -> Operated {
    let run = present::run(run);
    let workflow = present::handle_of(&run, scope);
    Operated { run, workflow }
}
