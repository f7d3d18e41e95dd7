//! `POST /internal/v1/nodes/{id}/token`: a short token for whoever proves the node's key. An unknown node, an unknown key
//! and a wrong signature look alike.

use axum::extract::State as Shared;
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;
use clients::TokenFault;
use clients::assertion::{self, Expected, PublicKey};
use clients::tokens::Bearer;
use domain::{ActorType, ErrorCode};
use node_protocol::{GetToken, NodeToken};
use sqlx::PgConnection;
use store::{nodes, used_node_assertions};
use uuid::Uuid;

use super::Said;
use crate::auth::UNCACHED;
use crate::edge::Context;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::identity::refused;
use crate::json::Json;
use crate::path::Id;
use crate::state::State;
use crate::strangers;

const ACTION: &str = "issue_node_token";

/// A node asks again before it is over; a key that is taken from it ends its tokens at once.
const LIFETIME: TimeDelta = TimeDelta::minutes(15);

pub(crate) fn token() -> Endpoint {
    Endpoint::new(ACTION, "A short-lived token for the holder of a node's key", issue)
        .proves_itself()
        .body::<GetToken>()
        .answers::<NodeToken>(200, "The token.")
        .refuses(&[ErrorCode::TokenInvalid, ErrorCode::TokenExpired, ErrorCode::TokenScopeInvalid])
}

async fn issue(
    Shared(state): Shared<State>,
    context: Context,
    id: Id,
    Said(asked): Said<GetToken>,
) -> Result<Response, ApiError> {
    let node = id.or(ErrorCode::TokenInvalid)?;
    let mut tx = state.write().await?;
    if let Err(refusal) = prove(&state, &mut tx, node, &asked).await {
        tx.rollback().await?;
        if refusal.code.status() == 401 {
            strangers::record(&state, &context, ACTION, format!("node:{node}"), refusal.code).await;
        }
        return Err(refusal);
    }
    tx.commit().await?;
    let bearer = Bearer {
        subject: node,
        actor_type: ActorType::Node,
        org_id: None,
        project_id: None,
        scope: String::new(),
        key_id: None,
        lifetime: LIFETIME,
    };
    let minted = state.keys.minter.mint(bearer).map_err(|fault| ApiError::internal(&fault))?;
    let token = NodeToken {
        access_token: minted.access_token.expose().clone(),
        token_type: "Bearer".to_owned(),
        expires_in: LIFETIME.num_seconds(),
    };
    Ok((UNCACHED, Json(token)).into_response())
}

async fn prove(state: &State, conn: &mut PgConnection, node: Uuid, asked: &GetToken) -> Result<(), ApiError> {
    let unproven = || ApiError::new(ErrorCode::TokenInvalid, "The key and the proof do not belong together.");
    let public_key = nodes::public_key(conn, node, &asked.key_id).await?.ok_or_else(unproven)?;
    let key = PublicKey::from_pem(&public_key).map_err(|fault| ApiError::internal(&fault))?;
    let expected = Expected {
        subject: &node.to_string(),
        audience: state.keys.minter.issuer(),
        key_id: &asked.key_id,
        now: state.keys.clock.now(),
    };
    let shown = assertion::verify(asked.assertion.expose(), &key, &expected).map_err(refused)?;
    if used_node_assertions::use_up(conn, node, &shown.jti, shown.replayable_until).await? {
        return Ok(());
    }
    Err(refused(TokenFault::Invalid("the assertion was used before")))
}
