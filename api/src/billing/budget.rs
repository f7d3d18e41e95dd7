//! `P/budget`: what a project means to spend in a month, and what becomes of it when it has. Simulated unless said
//! otherwise: the answer tells what it would do today.

use api_types::{Budget, BudgetEffect, SetBudget};
use axum::extract::State as Shared;
use axum::response::Response;
use domain::ErrorCode;
use domain::budget::{BudgetAction, BudgetMode};
use sqlx::PgConnection;
use store::{app_instances, budgets, prices, spent_budgets};
use uuid::Uuid;

use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::etag::{IfMatch, Tagged};
use crate::mutation::{Answer, Change, Mutation};
use crate::params::Params;
use crate::state::State;

pub(crate) fn budget() -> Endpoint {
    Endpoint::new("get_budget", "What the project means to spend in a month", read)
        .answers::<Budget>(200, "The budget, and what it means today; `ETag` tags it.")
        .tagged()
}

pub(crate) fn set_budget() -> Endpoint {
    Endpoint::new("set_budget", "Say what the project means to spend in a month", set)
        .header("If-Match", "Only if the budget still has this tag.")
        .body::<SetBudget>()
        .answers::<Budget>(200, "The budget, and what it means today; `ETag` tags it.")
        .tagged()
        .refuses(&[ErrorCode::PreconditionFailed])
}

async fn read(
    Shared(state): Shared<State>,
    caller: Caller,
    params: Params,
) -> Result<Tagged<Budget>, ApiError> {
    params.finish()?;
    let mut tx = state.read().await?;
    let budget = shown(&mut tx, here(&caller)?.1).await?;
    tx.rollback().await?;
    Ok(Tagged(budget))
}

async fn set(if_match: IfMatch, mut change: Mutation<SetBudget>) -> Result<Response, ApiError> {
    let place = here(&change.caller)?;
    budgets::find_locked(&mut change.tx, place.1).await?;
    let before = shown(&mut change.tx, place.1).await?;
    if_match.require(&before)?;
    let by = change.caller.principal().id;
    let SetBudget { amount_minor, action, mode, reason } = change.body.clone();
    budgets::set(&mut change.tx, place, amount_minor, action, mode, by).await?;
    spent_budgets::tell(&mut change.tx, place, change.caller.context.thread()).await?;
    let after = shown(&mut change.tx, place.1).await?;
    let told = Change::of("budget", place.1).from(&before).to(&after).because(reason);
    change.commit(told, Answer::ok(&after)?.tagged()).await
}

fn here(caller: &Caller) -> Result<(Uuid, Uuid), ApiError> {
    let place = caller.scope.org().zip(caller.scope.project());
    place.ok_or_else(|| ApiError::plain(ErrorCode::ProjectNotFound))
}

/// A project that never said anything has no limit.
async fn shown(conn: &mut PgConnection, project_id: Uuid) -> Result<Budget, ApiError> {
    let standing = budgets::standing(conn, project_id).await?;
    let is_exceeded = standing.is_exceeded();
    let (amount_minor, action, mode) = match &standing.budget {
        Some(budget) => (budget.amount_minor, budget.action, budget.mode),
        None => (None, BudgetAction::Warn, BudgetMode::Simulate),
    };
    let stop = match action {
        BudgetAction::Stop if is_exceeded => app_instances::standing_in(conn, project_id).await?,
        _ => Vec::new(),
    };
    Ok(Budget {
        project_id,
        amount_minor,
        action,
        mode,
        currency: prices::currency(conn).await?,
        month: standing.month,
        spent_minor: standing.spent_minor,
        is_exceeded,
        would: BudgetEffect { deny_new: is_exceeded && action.denies_new(), stop },
    })
}
