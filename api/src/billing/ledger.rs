//! `GET /billing/ledger` and `/balance`: what was charged, entry by entry, and what is left.

use api_types::{Balance, Ledger};
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use domain::{ErrorCode, PolicyKey};
use sqlx::PgConnection;
use store::policies::{self, Subject};
use store::{billing_ledger, budgets, prices};
use utoipa::openapi::schema::KnownFormat;
use uuid::Uuid;

use super::{Whose, rated_until};
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_as};
use crate::error::ApiError;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::prices::shown;
use crate::state::State;

pub(crate) fn ledger() -> Endpoint {
    Endpoint::new("get_ledger", "Every charge and every correction of one, oldest first", entries)
        .of_a_project()
        .query("project_id", text_as(KnownFormat::Uuid), "The project.")
        .pages()
        .answers::<Ledger>(200, "A page of entries, with the prices that they name.")
        .refuses(&[ErrorCode::ProjectNotFound])
}

pub(crate) fn balance() -> Endpoint {
    Endpoint::new("get_balance", "What is left: the sum of the ledger", left)
        .of_a_project()
        .query("project_id", text_as(KnownFormat::Uuid), "The project.")
        .answers::<Balance>(200, "The balance, and how fresh it is.")
        .refuses(&[ErrorCode::ProjectNotFound])
}

/// A cursor is the number of the last entry.
async fn entries(
    Shared(state): Shared<State>,
    caller: Caller,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Json<Ledger>, ApiError> {
    let paging: Paging<i64> = Paging::read(&mut params, "led1");
    let whose = Whose::project(&mut params, &headers);
    params.finish()?;
    let mut tx = state.read().await?;
    let (_, project) = whose.place(&state, &mut tx, &caller).await?;
    let after = paging.after.unwrap_or_default();
    let rows = billing_ledger::list(&mut tx, project, after, paging.rows()).await?;
    let page = paging.page(rows, |entry| entry.seq, |entry| entry);
    let named: Vec<Uuid> = page.items.iter().filter_map(|entry| entry.price_id).collect();
    let prices = prices::of(&mut tx, &named).await?;
    tx.rollback().await?;
    let prices = prices.into_iter().map(shown).collect();
    Ok(Json(Ledger { items: page.items, next_cursor: page.next_cursor, prices }))
}

async fn left(
    Shared(state): Shared<State>,
    caller: Caller,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Json<Balance>, ApiError> {
    let whose = Whose::project(&mut params, &headers);
    params.finish()?;
    let mut tx = state.read().await?;
    let owner = whose.place(&state, &mut tx, &caller).await?;
    let balance = balance_of(&mut tx, owner).await?;
    tx.rollback().await?;
    Ok(Json(balance))
}

pub(super) async fn balance_of(
    conn: &mut PgConnection,
    (org, project_id): (Uuid, Uuid),
) -> Result<Balance, ApiError> {
    let kept = billing_ledger::find(conn, project_id).await?.map(|(kept, _)| kept);
    let head = kept.as_ref().map(|kept| kept.head.clone()).unwrap_or_default();
    let here = Subject { user: None, project: Some(project_id), org: Some(org) };
    let threshold_minor = policies::whole_number(conn, PolicyKey::LowBalanceThresholdMinor, here).await?;
    let spent = budgets::standing(conn, project_id).await?.spent_minor;
    let rated_until = rated_until(conn, project_id).await?;
    Ok(Balance {
        project_id,
        balance_minor: head.balance_minor,
        currency: kept.and_then(|kept| kept.currency),
        entries: head.seq,
        head_hash: head.hash,
        is_low: head.balance_minor < threshold_minor,
        threshold_minor,
        spent_this_month_minor: spent,
        rated_until,
    })
}
