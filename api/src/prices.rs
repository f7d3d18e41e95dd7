//! `A/prices`: what usage costs. Every price is a version that never changes; a later one takes its place from a moment on,
//! and what was charged stays as it was unless it is asked to be rated again.

use api_types::{Invalid, NewPrice, Page, Price, PriceMade, PriceModel};
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::Response;
use chrono::{DateTime, Utc};
use domain::ErrorCode;
use domain::price::{Covers, Price as Version, Rate};
use engine::{Start, Started};
use sqlx::PgConnection;
use store::prices::{self as table, PriceRow};
use store::server;
use uuid::Uuid;
use workflows::billing::rerate::RerateUsage;

use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::mutation::{Answer, Change, Mutation};
use crate::paging::Paging;
use crate::params::Params;
use crate::state::State;
use crate::workflows::handle_of_run;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_prices", "Every version of every price", all)
        .answers_page::<Price>("A page of prices.")
}

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_price", "Make a price, or the next version of one", make)
        .body::<NewPrice>()
        .answers::<PriceMade>(201, "The price. With `rerate`, `workflow` is the run that applies it to the past.")
}

async fn all(Shared(state): Shared<State>, mut params: Params) -> Result<Json<Page<Price>>, ApiError> {
    let paging = Paging::read(&mut params, "price1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = table::list(&mut tx, paging.slice()).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.price.id, shown)))
}

async fn make(Shared(state): Shared<State>, mut change: Mutation<NewPrice>) -> Result<Response, ApiError> {
    let now = server::now(&mut change.tx).await?;
    let price = version(&change.body, now)?;
    let currency = change.body.currency.clone();
    if let Some(common) = table::lock_currency(&mut change.tx).await?.filter(|common| *common != currency) {
        return Err(ApiError::invalid(
            "/currency",
            format!("must be {common}, as that of every other price and of every ledger"),
        ));
    }
    let by = change.caller.principal().id;
    let made = shown(table::insert(&mut change.tx, &price, &currency, by).await?);
    let mut started = match change.body.rerate {
        true => Some(rerate(&state, &mut change.tx, &change.caller, &price).await?),
        false => None,
    };
    let workflow = match &started {
        Some(started) => Some(handle_of_run(&mut change.tx, change.caller.scope, started.id).await?),
        None => None,
    };
    let told = Change::of("price", made.id).to(&made);
    let body = PriceMade { price: made, workflow };
    let answer = Answer::json(StatusCode::CREATED, &body)?;
    let answer = match &body.workflow {
        Some(workflow) => answer.with(header::LOCATION, workflow.href.clone()),
        None => answer,
    };
    let answer = change.commit(told, answer).await?;
    if let Some(started) = &mut started {
        started.begin();
    }
    Ok(answer)
}

async fn rerate(
    state: &State,
    conn: &mut PgConnection,
    caller: &Caller,
    price: &Version,
) -> Result<Started, ApiError> {
    let run = RerateUsage {
        usage_source: price.usage_source,
        usage_unit: price.usage_unit.clone(),
        from: price.effective_from,
    };
    let options = Start {
        correlation_id: caller.context.correlation_id.to_string(),
        traceparent: caller.context.traceparent(),
        ..Start::default()
    };
    Ok(state.engine.start(conn, &run, options).await?)
}

/// The price that is asked for, or all that is wrong with it.
fn version(asked: &NewPrice, now: DateTime<Utc>) -> Result<Version, ApiError> {
    let mut wrong: Vec<(String, String)> = Vec::new();
    let mut need = |pointer: &str, given: bool, wanted: bool| match (given, wanted) {
        (false, true) => wrong.push((pointer.to_owned(), "is required by this model".to_owned())),
        (true, false) => wrong.push((pointer.to_owned(), "is not taken by this model".to_owned())),
        _ => {}
    };
    need("/amount_minor", asked.amount_minor.is_some(), asked.model != PriceModel::Tiered);
    need("/tiers", asked.tiers.is_some(), asked.model == PriceModel::Tiered);
    need("/per", asked.per.is_some() && asked.model == PriceModel::Flat, false);
    let (amount_minor, per) = (asked.amount_minor.unwrap_or_default(), asked.per.unwrap_or(1));
    let version = Version {
        id: Uuid::now_v7(),
        version: 1,
        usage_source: asked.usage_source,
        usage_unit: asked.usage_unit.clone(),
        app_slug: asked.app_slug.clone(),
        sku: asked.sku.clone(),
        rate: match asked.model {
            PriceModel::Flat => Rate::Flat { amount_minor },
            PriceModel::PerUnit => Rate::PerUnit { amount_minor, per },
            PriceModel::Tiered => Rate::Tiered { per, tiers: asked.tiers.clone().unwrap_or_default() },
        },
        effective_from: asked.effective_from.unwrap_or(now),
    };
    let is_unit = |text: &str| {
        let mut letters = text.chars();
        letters.next().is_some_and(|first| first.is_ascii_lowercase())
            && text.len() <= 63
            && letters.all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_')
    };
    if !is_unit(&version.usage_unit) {
        wrong.push(("/usage_unit".to_owned(), "must be lower-case letters, digits and `_`".to_owned()));
    }
    if asked.currency.len() != 3 || !asked.currency.chars().all(|one| one.is_ascii_uppercase()) {
        wrong.push(("/currency".to_owned(), "must be three capital letters".to_owned()));
    }
    if wrong.is_empty() {
        wrong.extend(version.problems(asked.covers));
    }
    if wrong.is_empty() {
        return Ok(version);
    }
    let listed = wrong.into_iter().map(|(pointer, message)| Invalid { pointer, message }).collect();
    Err(ApiError::listing(ErrorCode::ValidationError, listed))
}

pub(crate) fn shown(row: PriceRow) -> Price {
    let PriceRow { price, currency, created_by, created_at } = row;
    let (model, amount_minor, per, tiers) = match price.rate {
        Rate::Flat { amount_minor } => (PriceModel::Flat, Some(amount_minor), None, None),
        Rate::PerUnit { amount_minor, per } => (PriceModel::PerUnit, Some(amount_minor), Some(per), None),
        Rate::Tiered { per, tiers } => (PriceModel::Tiered, None, Some(per), Some(tiers)),
    };
    Price {
        id: price.id,
        version: price.version,
        usage_source: price.usage_source,
        usage_unit: price.usage_unit,
        app_slug: price.app_slug,
        sku: price.sku,
        covers: Covers::of(price.usage_source),
        model,
        amount_minor,
        per,
        tiers,
        currency,
        effective_from: price.effective_from,
        created_by,
        created_at,
    }
}
