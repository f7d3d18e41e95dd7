//! `GET /api/v1/me`: the caller as the platform sees it. It is kept with the principal, and the names of projects are
//! remembered, so it costs no query.

use api_types::{Me, MyGrant};
use axum::extract::State as Shared;
use domain::Grant;

use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::params::Params;
use crate::state::State;

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_me", "Who the caller is and what they may do where", me)
        .answers::<Me>(200, "The caller.")
}

async fn me(Shared(state): Shared<State>, caller: Caller, params: Params) -> Result<Json<Me>, ApiError> {
    params.finish()?;
    let principal = caller.principal();
    let mut grants = Vec::with_capacity(principal.grants.len());
    for grant in &principal.grants {
        grants.push(shown(&state, grant).await?);
    }
    Ok(Json(Me {
        id: principal.id,
        actor_type: principal.actor_type,
        name: caller.standing.name.clone(),
        platform_role: caller.standing.platform_role.clone(),
        grants,
    }))
}

async fn shown(state: &State, grant: &Grant) -> Result<MyGrant, ApiError> {
    let project_id = grant.scope.project();
    let project_slug = match project_id {
        Some(project) => Some(state.places.slug(state, project).await?),
        None => None,
    };
    Ok(MyGrant {
        org_id: grant.scope.org(),
        project_id,
        project_slug,
        role: grant.role.clone(),
        permissions: grant.keys.iter().collect(),
    })
}
