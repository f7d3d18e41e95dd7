//! `A/schedules`: what starts by itself, and running, pausing or resuming it by hand.

use api_types::{MissedTicks, Operate, Overlap, Page, Schedule, WorkflowHandle};
use axum::Json;
use axum::extract::{Path, State as Shared};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use domain::ErrorCode;
use engine::{Missed, OperateError, ScheduleView};

use crate::body::Body;
use crate::edge::Context;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::params::Params;
use crate::scope::Scope;
use crate::state::State;
use crate::workflows::present;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_schedules", "Every schedule, by name", all)
        .answers_page::<Schedule>("All schedules on one page.")
}

pub(crate) fn run() -> Endpoint {
    operation("run_schedule", "Start a schedule's workflow now, beside its ticks", start)
        .answers::<WorkflowHandle>(202, "Started; `Location` is where to follow the run.")
        .refuses(&[ErrorCode::StateConflict])
}

pub(crate) fn pause() -> Endpoint {
    operation("pause_schedule", "Let ticks pass without starting anything", hold)
        .answers::<Schedule>(200, "The schedule, paused.")
}

pub(crate) fn resume() -> Endpoint {
    operation("resume_schedule", "Start at the next tick again", release)
        .answers::<Schedule>(200, "The schedule, ticking.")
}

fn operation<H, T>(name: &'static str, summary: &'static str, handler: H) -> Endpoint
where
    H: axum::handler::Handler<T, State>,
    T: 'static,
{
    Endpoint::new(name, summary, handler).body::<Operate>().refuses(&[ErrorCode::ScheduleNotFound])
}

/// Schedules are as many as the code declares, so one page holds them all; the shape is that of every list.
async fn all(Shared(state): Shared<State>, mut params: Params) -> Result<Json<Page<Schedule>>, ApiError> {
    let _: Option<u16> = params.parsed("limit", "a number from 1 to 200");
    if params.text("cursor").is_some() {
        params.problem("cursor", "is not a cursor of this list");
    }
    params.finish()?;
    let mut tx = state.read().await?;
    let schedules = state.engine.schedules(&mut tx).await?;
    tx.rollback().await?;
    Ok(Json(Page { items: schedules.into_iter().map(shown).collect(), next_cursor: None }))
}

async fn start(
    Shared(state): Shared<State>,
    Path(name): Path<String>,
    scope: Scope,
    context: Context,
    Body(body): Body<Operate>,
) -> Result<Response, ApiError> {
    let mut tx = state.write().await?;
    let run =
        state.engine.run_schedule(&mut tx, &name, &context.asker(body.reason)).await.map_err(refused)?;
    tx.commit().await?;
    state.engine.wake();
    let handle = present::handle(&run, scope);
    let headers = [(header::LOCATION, handle.href.clone()), (header::RETRY_AFTER, "1".to_owned())];
    Ok((StatusCode::ACCEPTED, headers, Json(handle)).into_response())
}

async fn hold(
    Shared(state): Shared<State>,
    Path(name): Path<String>,
    context: Context,
    Body(body): Body<Operate>,
) -> Result<Json<Schedule>, ApiError> {
    let mut tx = state.write().await?;
    let held =
        state.engine.pause_schedule(&mut tx, &name, &context.asker(body.reason)).await.map_err(refused)?;
    tx.commit().await?;
    Ok(Json(shown(held)))
}

async fn release(
    Shared(state): Shared<State>,
    Path(name): Path<String>,
    context: Context,
    Body(body): Body<Operate>,
) -> Result<Json<Schedule>, ApiError> {
    let mut tx = state.write().await?;
    let going =
        state.engine.resume_schedule(&mut tx, &name, &context.asker(body.reason)).await.map_err(refused)?;
    tx.commit().await?;
    state.engine.wake();
    Ok(Json(shown(going)))
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
    }
}
