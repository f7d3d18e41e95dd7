//! One handler for every registered lifecycle action: find the resource and hold it still, see that its state allows the
//! action, start the run in the same transaction, answer `202` with the run.

use std::time::Duration;

use api_types::WorkflowHandle;
use axum::Json;
use axum::extract::{FromRequestParts, State as Shared};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::{ErrorCode, Scope};
use engine::{Start, Started};
use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;
use utoipa::ToSchema;
use uuid::Uuid;
use workflows::action::{Action, Refused, Requester, Subject, Visitor, allowed_actions};

use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_like};
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::mutation::{Answer, Change, Mutation};
use crate::params::Params;
use crate::router::Route;
use crate::state::State;
use crate::wait;
use crate::workflows::{find, present};

/// How the API finds and shows what actions act on.
pub(crate) trait Resource: Subject {
    /// Where its actions are: the prefix, and the resource's own path below it.
    const PLACE: &'static str;
    const PATH: &'static str;
    const MISSING: ErrorCode;
    /// What of the path says which one is meant.
    type Key: FromRequestParts<State> + Send + Sync + 'static;
    /// As it is read.
    type Shown: Serialize;
    /// As it is answered: with the run.
    type Accepted: Serialize + ToSchema;

    /// Held still until the transaction ends.
    fn find_locked(
        conn: &mut PgConnection,
        caller: &Caller,
        key: &Self::Key,
    ) -> impl Future<Output = Result<Option<Self>, ApiError>> + Send;

    fn shown(&self, caller: &Caller) -> Self::Shown;
    fn accepted(&self, caller: &Caller, workflow: WorkflowHandle) -> Self::Accepted;
}

/// The routes of every registered action on `R`.
pub(crate) fn routes<R: Resource>() -> Vec<Route> {
    struct Mount(Vec<Route>);
    impl<R: Resource> Visitor<R> for Mount {
        fn action<A: Action<Subject = R>>(&mut self) {
            let path = format!("{}/{}", R::PATH, A::VERB);
            self.0.push(Route::new(Method::POST, R::PLACE, &path, A::PERMISSION, endpoint::<A>()));
        }
    }
    let mut mount = Mount(Vec::new());
    R::actions(&mut mount);
    mount.0
}

fn endpoint<A>() -> Endpoint
where
    A: Action<Subject: Resource>,
{
    let missing = [A::Subject::MISSING, ErrorCode::StateConflict, ErrorCode::OperationInProgress];
    Endpoint::new(A::OPERATION, A::SUMMARY, act::<A>)
        .query(
            "wait",
            text_like(wait::PATTERN),
            "Hold the answer until the run settles, at most 60s; e.g. `30s`.",
        )
        .header("If-Match", "Only if the resource still has this tag.")
        .body::<A::Input>()
        .answers::<<A::Subject as Resource>::Accepted>(202, "Started; `Location` is where to follow the run.")
        .answers::<<A::Subject as Resource>::Accepted>(
            200,
            "With `wait`: the run has settled; `workflow.status` says how.",
        )
        .refuses(&missing)
        .refuses(&[ErrorCode::PreconditionFailed])
        .refuses(A::REFUSES)
}

/// What is read from a request before its body.
type Request<R> = (<R as Resource>::Key, IfMatch, Params);

async fn act<A: Action<Subject: Resource>>(
    Shared(state): Shared<State>,
    (key, if_match, mut params): Request<A::Subject>,
    change: Mutation<A::Input>,
) -> Result<Response, ApiError> {
    let wait = wait::asked(&mut params);
    params.finish()?;
    let caller = change.caller.clone();
    let (run, answer) = begin::<A>(&state, &key, &if_match, change).await?;
    match wait {
        Some(wait) => settled::<A::Subject>(&state, &caller, &key, run, wait, answer).await,
        None => Ok(answer),
    }
}

/// The one transaction: the action is legal, the run is started, and all that a change owes is written.
async fn begin<A: Action<Subject: Resource>>(
    state: &State,
    key: &<A::Subject as Resource>::Key,
    if_match: &IfMatch,
    mut change: Mutation<A::Input>,
) -> Result<(Uuid, Response), ApiError> {
    let subject = A::Subject::find_locked(&mut change.tx, &change.caller, key).await?;
    let subject = subject.ok_or_else(|| ApiError::plain(A::Subject::MISSING))?;
    if_match.require(&subject.shown(&change.caller))?;
    if !A::is_legal(&subject) {
        return Err(illegal::<A>(&subject));
    }
    let reason = A::reason(&change.body).map(str::to_owned);
    let by = requester(&change.caller, reason.clone());
    let mut started = start::<A>(state, &mut change, &subject, by).await?;
    let handle = handle(&mut change.tx, change.caller.scope, started.id).await?;
    let told = Change::of(A::Subject::KIND, subject.id())
        .from(&json!({ "status": subject.state() }))
        .to(&json!({ "workflow_id": started.id }))
        .because(reason);
    let answer = accepted(&subject, &change.caller, handle)?;
    let answer = change.commit(told, answer).await?;
    started.begin();
    Ok((started.id, answer))
}

async fn handle(conn: &mut PgConnection, scope: Scope, run: Uuid) -> Result<WorkflowHandle, ApiError> {
    Ok(present::handle_of(&present::run(find(conn, scope, run).await?), scope))
}

fn illegal<A: Action<Subject: Resource>>(subject: &A::Subject) -> ApiError {
    let message =
        format!("{} is not possible while the {} is {}.", A::VERB, A::Subject::KIND, subject.state());
    ApiError::new(ErrorCode::StateConflict, message)
        .with("state", subject.state())
        .with("allowed_actions", json!(allowed_actions(subject)))
}

fn requester(caller: &Caller, reason: Option<String>) -> Requester {
    Requester {
        actor_id: caller.principal().id,
        actor_type: caller.principal().actor_type,
        actor_role: caller.principal().role_in(caller.scope).map(str::to_owned),
        reason,
    }
}

async fn start<A: Action<Subject: Resource>>(
    state: &State,
    change: &mut Mutation<A::Input>,
    subject: &A::Subject,
    by: Requester,
) -> Result<Started, ApiError> {
    let input = std::mem::take(&mut change.body);
    let run = A::begin(&mut change.tx, subject, input, by).await?;
    let (org_id, project_id) = subject.owner();
    let options = Start {
        project_id,
        org_id: Some(org_id),
        correlation_id: change.caller.context.correlation_id.to_string(),
        trace_id: change.caller.context.trace_parent.as_ref().map(|parent| parent.trace_id().to_owned()),
        target: Some(subject.target()),
        ..Start::default()
    };
    Ok(state.engine.start(&mut change.tx, &run, options).await?)
}

fn accepted<R: Resource>(subject: &R, caller: &Caller, handle: WorkflowHandle) -> Result<Answer, ApiError> {
    let location = handle.href.clone();
    let answer = Answer::json(StatusCode::ACCEPTED, &subject.accepted(caller, handle))?;
    Ok(answer.with(header::LOCATION, location).with(header::RETRY_AFTER, "1".to_owned()))
}

/// What became of it, or what was accepted when the time is up.
async fn settled<R: Resource>(
    state: &State,
    caller: &Caller,
    key: &R::Key,
    run: Uuid,
    wait: Duration,
    answer: Response,
) -> Result<Response, ApiError> {
    if !wait::until_settled(state, run, wait).await? {
        return Ok(answer);
    }
    let mut tx = state.write().await?;
    let subject = R::find_locked(&mut tx, caller, key).await?;
    let handle = handle(&mut tx, caller.scope, run).await?;
    tx.rollback().await?;
    let subject = subject.ok_or_else(|| ApiError::plain(R::MISSING))?;
    Ok(([(header::LOCATION, handle.href.clone())], Json(subject.accepted(caller, handle))).into_response())
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> ApiError {
        match refused {
            Refused::No { code, message, details } => ApiError { details, ..ApiError::new(code, message) },
            Refused::Invalid(problems) => {
                let invalid = |(pointer, message)| api_types::Invalid { pointer, message };
                ApiError::listing(ErrorCode::ValidationError, problems.into_iter().map(invalid).collect())
            }
            Refused::Database(error) => error.into(),
        }
    }
}
