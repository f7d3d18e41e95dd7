//! `GET /api/v1/me`: the caller as the platform sees it.

use api_types::{Me, MyGrant};
use axum::Json;
use axum::extract::State as Shared;
use domain::{ActorType, Grant};
use store::{service_accounts, users};

use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::params::Params;
use crate::state::State;

pub(crate) fn show() -> Endpoint {
    Endpoint::new("get_me", "Who the caller is and what they may do where", me)
        .answers::<Me>(200, "The caller.")
}

async fn me(Shared(state): Shared<State>, caller: Caller, params: Params) -> Result<Json<Me>, ApiError> {
    params.finish()?;
    let principal = caller.principal();
    let mut tx = state.read().await?;
    let (name, platform_role) = match principal.actor_type {
        ActorType::User => {
            let user = users::find(&mut tx, principal.id).await?;
            user.map_or_else(Default::default, |user| (user.username, Some(user.platform_role)))
        }
        _ => {
            let account = service_accounts::find_active(&mut tx, principal.id).await?;
            (account.map(|account| account.name).unwrap_or_default(), None)
        }
    };
    tx.rollback().await?;
    Ok(Json(Me {
        id: principal.id,
        actor_type: principal.actor_type,
        name,
        platform_role,
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
