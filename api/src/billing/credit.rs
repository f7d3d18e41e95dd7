//! `POST A/projects/{id}/credits`: money that came in, as an entry of the project's ledger. Like every entry it stays.

use api_types::NewCredit;
use axum::http::StatusCode;
use axum::response::Response;
use domain::ErrorCode;
use domain::ledger::Entry;
use store::{prices, projects, rating};

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::path::Id;

pub(crate) fn create_credit() -> Endpoint {
    Endpoint::new("create_credit", "Add money to a project's ledger", credit)
        .body::<NewCredit>()
        .answers::<Entry>(201, "The entry of the ledger.")
        .refuses(&[ErrorCode::ProjectNotFound, ErrorCode::StateConflict])
}

async fn credit(id: Id, mut change: Mutation<NewCredit>) -> Result<Response, ApiError> {
    let missing = ErrorCode::ProjectNotFound;
    // Before the project: whoever rates holds the prices first too.
    let common = prices::lock_currency(&mut change.tx).await?;
    let found = projects::find_locked(&mut change.tx, id.or(missing)?).await?;
    let project = found.ok_or_else(|| ApiError::plain(missing))?;
    let NewCredit { amount_minor, currency, reason } = change.body.clone();
    if let Some(common) = common.filter(|common| *common != currency) {
        let why = format!("Ledgers are kept in {common}.");
        return Err(ApiError::new(ErrorCode::StateConflict, why).with("currency", common));
    }
    let correlation = change.caller.context.correlation_id.to_string();
    let owner = (project.org_id, project.id);
    let entry = rating::credit(&mut change.tx, owner, amount_minor, &currency, &correlation).await?;
    let told = Change::of("ledger", project.id).owned_by(owner.0, owner.1).to(&entry).because(reason);
    change.commit(told, Answer::json(StatusCode::CREATED, &entry)?).await
}
