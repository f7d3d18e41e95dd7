//! `A/teardown-debts` and `A/resource-ledger/leaks`: what nodes still owe, and what is held by instances that should hold
//! nothing, each with its owner and since when.

use api_types::{Page, ResourceLeak, TeardownDebt};
use axum::extract::State as Shared;
use store::resource_leaks::{self, Leak};
use store::teardowns::{self, Debt};

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::state::State;

pub(crate) fn debts() -> Endpoint {
    Endpoint::new("list_teardown_debts", "Removals that silent nodes still owe", owed)
        .answers_page::<TeardownDebt>("A page of open debts.")
}

pub(crate) fn leaks() -> Endpoint {
    Endpoint::new("list_resource_leaks", "What instances hold although they should not", leaked)
        .answers_page::<ResourceLeak>("A page of leaks, by instance.")
}

async fn owed(
    Shared(state): Shared<State>,
    mut params: Params,
) -> Result<Json<Page<TeardownDebt>>, ApiError> {
    let paging = Paging::read(&mut params, "debt1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = teardowns::open_debts(&mut tx, paging.slice()).await?;
    tx.rollback().await?;
    let shown = |debt: Debt| TeardownDebt {
        app_instance_id: debt.instance_id,
        node_id: debt.node_id,
        workflow_id: debt.run_id,
        created_at: debt.created_at,
    };
    Ok(Json(paging.page(rows, |debt| debt.instance_id, shown)))
}

async fn leaked(
    Shared(state): Shared<State>,
    mut params: Params,
) -> Result<Json<Page<ResourceLeak>>, ApiError> {
    let paging = Paging::read(&mut params, "leak1");
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = resource_leaks::list(&mut tx, paging.slice()).await?;
    tx.rollback().await?;
    let shown = |leak: Leak| ResourceLeak {
        app_instance_id: leak.instance_id,
        org_id: leak.org_id,
        project_id: leak.project_id,
        app_slug: leak.app_slug,
        status: leak.status,
        held: leak
            .held
            .into_iter()
            .map(|held| format!("{} {} {}", held.quantity, held.kind, held.resource))
            .collect(),
        since: leak.since,
    };
    Ok(Json(paging.page(rows, |leak| leak.instance_id, shown)))
}
