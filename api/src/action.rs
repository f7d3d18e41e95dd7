//! One handler for every registered lifecycle action: find the resource and hold it still, see that its state allows the
//! action, start the run in the same transaction, answer `202` with the run.

use std::future::ready;
use std::time::Duration;

use api_types::{RunStatus, WorkflowHandle};
use axum::extract::{FromRequestParts, State as Shared};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::event::NewEvent;
use domain::{ErrorCode, Scope};
use engine::inspect::{RunFilter, runs};
use engine::{RunState, Start, Started, Workflow};
use serde::Serialize;
use serde_json::json;
use sqlx::PgConnection;
use store::outbox;
use utoipa::ToSchema;
use uuid::Uuid;
use workflows::action::{Action, Refused, Requester, Subject, Visitor, allowed_actions};

use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_like};
use crate::error::ApiError;
use crate::etag::IfMatch;
use crate::json::Json;
use crate::mutation::{Answer, Change, Mutation};
use crate::router::Route;
use crate::state::State;
use crate::wait::{self, Wait};
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
    type Shown: Serialize + Send + Sync;
    /// As it is answered: with the run.
    type Accepted: Serialize + ToSchema;

    /// Held still until the transaction ends.
    fn find_locked(
        conn: &mut PgConnection,
        caller: &Caller,
        key: &Self::Key,
    ) -> impl Future<Output = Result<Option<Self>, ApiError>> + Send;

    fn shown(
        &self,
        conn: &mut PgConnection,
        caller: &Caller,
    ) -> impl Future<Output = Result<Self::Shown, ApiError>> + Send;

    fn accepted(shown: Self::Shown, workflow: WorkflowHandle) -> Self::Accepted;

    /// The verbs of what may be asked of it now, as it is shown and as a refusal names them.
    fn offered(
        &self,
        _: &mut PgConnection,
    ) -> impl Future<Output = Result<Vec<&'static str>, ApiError>> + Send {
        ready(Ok(allowed_actions(self)))
    }
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
            "With `wait`: the run has settled; `workflow.status` says how. Or it was done before.",
        )
        .refuses(&missing)
        .refuses(&[ErrorCode::PreconditionFailed])
        .refuses(A::REFUSES)
}

/// What is read from a request before its body.
type Request<R> = (<R as Resource>::Key, IfMatch, Wait);

async fn act<A: Action<Subject: Resource>>(
    Shared(state): Shared<State>,
    (key, if_match, Wait(wait)): Request<A::Subject>,
    change: Mutation<A::Input>,
) -> Result<Response, ApiError> {
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
    let subject = found::<A::Subject>(&mut change.tx, &change.caller, key).await?;
    let before = subject.shown(&mut change.tx, &change.caller).await?;
    if_match.require(&before)?;
    let reason = A::reason(&change.body).map(str::to_owned);
    let (org, project) = subject.owner();
    if A::is_begun(&subject)
        && let Some(run) = newest_run::<A>(&mut change.tx, &subject).await?
    {
        let handle = handle(&mut change.tx, change.caller.scope, run).await?;
        let told = Change::of(A::Subject::KIND, subject.id()).owned_by(org, project).because(reason);
        return Ok((run, change.commit(told, accepted::<A::Subject>(before, handle)?).await?));
    }
    if !A::is_legal(&subject) {
        return Err(in_the_way::<A>(&mut change.tx, &subject).await?);
    }
    let by = requester(&change.caller, reason.clone());
    let mut started = start::<A>(state, &mut change, &subject, by).await?;
    let now = found::<A::Subject>(&mut change.tx, &change.caller, key).await?;
    let after = now.shown(&mut change.tx, &change.caller).await?;
    let handle = handle(&mut change.tx, change.caller.scope, started.id).await?;
    let told = Change::of(A::Subject::KIND, subject.id())
        .owned_by(org, project)
        .from(&json!({ "status": subject.state() }))
        .to(&json!({ "status": now.state(), "workflow_id": started.id }))
        .because(reason);
    let answer = change.commit(told, accepted::<A::Subject>(after, handle)?).await?;
    started.begin();
    Ok((started.id, answer))
}

/// What the action would be refused with now, whatever its input. One that is under way already is not.
pub(crate) async fn may<A: Action<Subject: Resource>>(
    conn: &mut PgConnection,
    subject: &A::Subject,
) -> Result<(), ApiError> {
    if A::is_begun(subject) {
        return Ok(());
    }
    let busy = runs(conn, &about(subject)).await?.pop().is_some_and(|run| !run.state.is_terminal());
    if A::is_legal(subject) && (A::SUPERSEDES || !busy) {
        return Ok(());
    }
    Err(in_the_way::<A>(conn, subject).await?)
}

async fn found<R: Resource>(conn: &mut PgConnection, caller: &Caller, key: &R::Key) -> Result<R, ApiError> {
    R::find_locked(conn, caller, key).await?.ok_or_else(|| ApiError::plain(R::MISSING))
}

/// The run that does it or did. One that was given up is neither.
async fn newest_run<A: Action>(
    conn: &mut PgConnection,
    subject: &A::Subject,
) -> Result<Option<Uuid>, ApiError> {
    let filter = RunFilter { kind: Some(A::Run::NAME.to_owned()), ..about(subject) };
    let newest = runs(conn, &filter).await?.pop();
    Ok(newest.filter(|run| !run.state.is_terminal() || run.state == RunState::Succeeded).map(|run| run.id))
}

/// The newest run about the subject.
fn about<S: Subject>(subject: &S) -> RunFilter {
    RunFilter { target: Some(subject.target()), limit: 1, ..RunFilter::default() }
}

/// A run that acts on the subject, or else the subject's own state.
async fn in_the_way<A: Action<Subject: Resource>>(
    conn: &mut PgConnection,
    subject: &A::Subject,
) -> Result<ApiError, ApiError> {
    let newest = runs(conn, &about(subject)).await?.pop();
    let Some(holder) = newest.filter(|run| !run.state.is_terminal()) else {
        return illegal::<A>(conn, subject).await;
    };
    Ok(ApiError::plain(ErrorCode::OperationInProgress)
        .with("workflow_id", json!(holder.id))
        .with("kind", holder.kind)
        .with("status", holder.state.as_str()))
}

async fn handle(conn: &mut PgConnection, scope: Scope, run: Uuid) -> Result<WorkflowHandle, ApiError> {
    Ok(present::handle_of(&present::run(find(conn, scope, run).await?), scope))
}

async fn illegal<A: Action<Subject: Resource>>(
    conn: &mut PgConnection,
    subject: &A::Subject,
) -> Result<ApiError, ApiError> {
    let message =
        format!("{} is not possible while the {} is {}.", A::VERB, A::Subject::KIND, subject.state());
    Ok(ApiError::new(ErrorCode::StateConflict, message)
        .with("state", subject.state())
        .with("allowed_actions", json!(subject.offered(conn).await?)))
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
        org_id: Some(org_id).filter(|org| !org.is_nil()),
        correlation_id: change.caller.context.correlation_id.to_string(),
        traceparent: change.caller.context.traceparent(),
        target: Some(subject.target()),
        supersede: A::SUPERSEDES,
        ..Start::default()
    };
    let started = state.engine.start(&mut change.tx, &run, options).await?;
    if let Some((kind, data)) = A::told(subject, &run) {
        let thread = change.caller.context.thread();
        let event = NewEvent::of_project(subject.owner(), kind, subject.id(), &data, thread);
        outbox::insert(&mut change.tx, &event).await?;
    }
    Ok(started)
}

/// A run that is over already is answered as such.
pub(crate) fn accepted<R: Resource>(shown: R::Shown, handle: WorkflowHandle) -> Result<Answer, ApiError> {
    let (location, over) = (handle.href.clone(), is_over(handle.status));
    let status = if over { StatusCode::OK } else { StatusCode::ACCEPTED };
    let answer = Answer::json(status, &R::accepted(shown, handle))?.with(header::LOCATION, location);
    Ok(if over { answer } else { answer.with(header::RETRY_AFTER, "1".to_owned()) })
}

fn is_over(status: RunStatus) -> bool {
    use RunStatus::{Cancelled, Compensated, Failed, Succeeded};
    matches!(status, Succeeded | Failed | Compensated | Cancelled)
}

/// What became of it, or what was accepted when the time is up.
pub(crate) async fn settled<R: Resource>(
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
    let shown = found::<R>(&mut tx, caller, key).await?.shown(&mut tx, caller).await?;
    let handle = handle(&mut tx, caller.scope, run).await?;
    tx.rollback().await?;
    Ok(([(header::LOCATION, handle.href.clone())], Json(R::accepted(shown, handle))).into_response())
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
