//! `GET /api/v1/me`: the caller as the platform sees it. All of it is kept with the principal, so it costs no query.

use api_types::{Me, MyGrant};
use axum::Json;
use domain::Grant;

use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::params::Params;

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_me", "Who the caller is and what they may do where", me)
        .answers::<Me>(200, "The caller.")
}

async fn me(caller: Caller, params: Params) -> Result<Json<Me>, ApiError> {
    params.finish()?;
    let principal = caller.principal();
    Ok(Json(Me {
        id: principal.id,
        actor_type: principal.actor_type,
        name: caller.standing.name.clone(),
        platform_role: caller.standing.platform_role.clone(),
        grants: principal.grants.iter().map(shown).collect(),
    }))
}

fn shown(grant: &Grant) -> MyGrant {
    MyGrant {
        org_id: grant.scope.org(),
        project_id: grant.scope.project(),
        role: grant.role.clone(),
        permissions: grant.keys.iter().collect(),
    }
}
