//! `A/schedules`: what starts by itself, and running, pausing or resuming it by hand.

use api_types::{MissedTicks, Operate, Overlap, Page, Schedule, ScheduleResult, WorkflowHandle};
use axum::extract::{Path, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::redact::redacted;
use domain::{ErrorCode, Scope};
use engine::{Missed, OperateError, ScheduleView};
use uuid::Uuid;

use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_like};
use crate::error::ApiError;
use crate::etag::{IfMatch, Tagged};
use crate::json::Json;
use crate::mutation::{Answer, Change, Mutation};
use crate::params::Params;
use crate::state::State;
use crate::wait::{self, Wait};
use crate::workflows::{handle_of_run, present};

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_schedules", "Every schedule, by name", all)
        .answers_page::<Schedule>("All schedules on one page.")
}

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_schedule", "A schedule", one)
        .answers::<Schedule>(200, "The schedule; the `ETag` header is a strong tag of this very body.")
        .tagged()
        .refuses(&[ErrorCode::ScheduleNotFound])
}

pub(crate) fn run() -> Endpoint {
    operation("run_schedule", "Start a schedule's workflow now, beside its ticks", start)
        .query(
            "wait",
            text_like(wait::PATTERN),
            "Hold the answer until the run settles, at most 60s; e.g. `30s`.",
        )
        .answers::<WorkflowHandle>(202, "Started; `Location` is where to follow the run.")
        .answers::<WorkflowHandle>(200, "With `wait`: the run has settled; `status` says how.")
        .refuses(&[ErrorCode::OperationInProgress])
}

pub(crate) fn pause() -> Endpoint {
    turning(Act::Pause, "pause_schedule", "Let ticks pass without starting anything", "The schedule, paused.")
}

pub(crate) fn resume() -> Endpoint {
    turning(Act::Resume, "resume_schedule", "Start at the next tick again", "The schedule, ticking.")
}

fn turning(act: Act, name: &'static str, summary: &'static str, answer: &str) -> Endpoint {
    operation(name, summary, move |state, place: (Path<String>, IfMatch), change: Mutation<Operate>| {
        turn(act, state, place, change)
    })
    .header("If-Match", "Only if the schedule still has this tag.")
    .answers::<Schedule>(200, answer)
    .tagged()
    .refuses(&[ErrorCode::PreconditionFailed])
}

fn operation<H, T>(name: &'static str, summary: &'static str, handler: H) -> Endpoint
where
    H: axum::handler::Handler<T, State>,
    T: 'static,
{
    Endpoint::new(name, summary, handler).body::<Operate>().refuses(&[ErrorCode::ScheduleNotFound])
}

/// Schedules are as many as the code declares, so one page holds them all; the shape is that of every list.
async fn all(
    Shared(state): Shared<State>,
    _: Caller,
    mut params: Params,
) -> Result<Json<Page<Schedule>>, ApiError> {
    params.only_page();
    params.finish()?;
    let mut tx = state.read().await?;
    let schedules = state.engine.schedules(&mut tx).await?;
    tx.rollback().await?;
    Ok(Json(Page { items: schedules.into_iter().map(shown).collect(), next_cursor: None }))
}

async fn one(
    Shared(state): Shared<State>,
    _: Caller,
    Path(name): Path<String>,
    params: Params,
) -> Result<Tagged<Schedule>, ApiError> {
    params.finish()?;
    let mut tx = state.read().await?;
    let found = state.engine.schedules(&mut tx).await?.into_iter().find(|view| view.name == name);
    tx.rollback().await?;
    found.map(|view| Tagged(shown(view))).ok_or_else(|| ApiError::plain(ErrorCode::ScheduleNotFound))
}

async fn start(
    Shared(state): Shared<State>,
    (Path(name), Wait(wait)): (Path<String>, Wait),
    mut change: Mutation<Operate>,
) -> Result<Response, ApiError> {
    let scope = change.caller.scope;
    let asker = change.caller.asker(change.body.reason.take());
    let run = state.engine.run_schedule(&mut change.tx, &name, &asker).await.map_err(refused)?;
    let handle = present::handle(&run, scope);
    let answer = Answer::json(StatusCode::ACCEPTED, &handle)?
        .with(header::LOCATION, handle.href.clone())
        .with(header::RETRY_AFTER, "1".to_owned());
    let told = Change::of("schedule", &name).to(&handle).because(asker.reason);
    let answer = change.commit(told, answer).await?;
    state.engine.wake();
    match wait {
        Some(wait) if wait::until_settled(&state, run.id, wait).await? => {
            settled(&state, scope, run.id).await
        }
        _ => Ok(answer),
    }
}

async fn settled(state: &State, scope: Scope, run: Uuid) -> Result<Response, ApiError> {
    let mut tx = state.read().await?;
    let handle = handle_of_run(&mut tx, scope, run).await?;
    tx.rollback().await?;
    Ok(([(header::LOCATION, handle.href.clone())], Json(handle)).into_response())
}

#[derive(Clone, Copy)]
enum Act {
    Pause,
    Resume,
}

async fn turn(
    act: Act,
    Shared(state): Shared<State>,
    (Path(name), if_match): (Path<String>, IfMatch),
    mut change: Mutation<Operate>,
) -> Result<Response, ApiError> {
    let before = shown(state.engine.hold_schedule(&mut change.tx, &name).await.map_err(refused)?);
    if_match.require(&before)?;
    let asker = change.caller.asker(change.body.reason.take());
    let now = match act {
        Act::Pause => state.engine.pause_schedule(&mut change.tx, &name, &asker).await,
        Act::Resume => state.engine.resume_schedule(&mut change.tx, &name, &asker).await,
    };
    let now = shown(now.map_err(refused)?);
    let told = Change::of("schedule", &name).from(&before).to(&now).because(asker.reason);
    let answer = change.commit(told, Answer::ok(&now)?.tagged()).await?;
    state.engine.wake();
    Ok(answer)
}

/// Here, what is not found is the schedule.
fn refused(error: OperateError) -> ApiError {
    match error {
        OperateError::NotFound => ApiError::plain(ErrorCode::ScheduleNotFound),
        other => other.into(),
    }
}

fn shown(view: ScheduleView) -> Schedule {
    Schedule {
        name: view.name,
        kind: view.kind,
        cron: view.cron,
        paused: view.paused,
        missed: match view.missed {
            Missed::Skip => MissedTicks::Skip,
            Missed::One => MissedTicks::One,
            Missed::All => MissedTicks::All,
        },
        overlap: match view.overlap {
            engine::Overlap::Skip => Overlap::Skip,
            engine::Overlap::Queue => Overlap::Queue,
        },
        next_at: view.next_at,
        last_at: view.last_at,
        last_run_id: view.last_run_id,
        last_run_status: view.last_run_state.and_then(|state| state.parse().ok()).map(present::status),
        last_result: view.result.and_then(result),
    }
}

fn result(result: engine::ScheduleResult) -> Option<ScheduleResult> {
    Some(ScheduleResult {
        run_id: result.run_id,
        status: present::status(result.state.parse().ok()?),
        finished_at: result.finished_at,
        output: result.output.map(redacted),
        error: result.error,
    })
}
