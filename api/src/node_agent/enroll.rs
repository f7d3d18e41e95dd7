//! `POST /internal/v1/nodes/enroll`: the one-time token is used up and the node's own key registered, in one transaction. Whoever
//! asks again with that key did not get the answer, and is told it again.

use axum::extract::State as Shared;
use domain::{ActorType, ErrorCode};
use node_protocol::{Enrol, Enrolled, PublicKey};
use store::audit::{self, NewEntry};
use store::nodes::{self, Enrolment};
use uuid::Uuid;

use super::Said;
use crate::edge::Context;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::nodes::hash;
use crate::state::State;
use crate::strangers;

const ACTION: &str = "enroll_node";

pub(crate) fn enroll() -> Endpoint {
    Endpoint::new(ACTION, "Register a node's own key with its one-time token", register)
        .proves_itself()
        .body::<Enrol>()
        .answers::<Enrolled>(200, "Who the node is, and by which keys it believes tasks.")
        .refuses(&[ErrorCode::TokenInvalid])
}

async fn register(
    Shared(state): Shared<State>,
    context: Context,
    Said(asked): Said<Enrol>,
) -> Result<Json<Enrolled>, ApiError> {
    let key = PublicKey::from_pem(&asked.public_key)
        .map_err(|_| ApiError::invalid("/public_key", "must be an Ed25519 public key in PEM form"))?;
    let unwritable = |error: &dyn std::fmt::Display| ApiError::internal(error);
    let inventory = serde_json::to_value(&asked.inventory).map_err(|error| unwritable(&error))?;
    let enrolment = Enrolment {
        key_id: &key.id(),
        // Written afresh, so that equal keys are equal texts.
        public_key: &key.to_pem().map_err(|error| unwritable(&error))?,
        address: &asked.address,
        driver: &asked.driver,
        agent_version: &asked.agent_version,
        inventory: &inventory,
    };
    let token = hash(asked.enrolment_token.expose());
    let mut tx = state.write().await?;
    let node = match nodes::enrol(&mut tx, &token, &enrolment).await? {
        Some(node) => {
            audit::insert(&mut tx, &entry(&context, node.id, &enrolment)).await?;
            Some(node)
        }
        None => nodes::enrolled_with(&mut tx, &token, enrolment.key_id).await?,
    };
    let Some(node) = node else {
        tx.rollback().await?;
        let refused = "The enrolment token is unknown, was used, or has expired.";
        strangers::record(&state, &context, ACTION, "node".to_owned(), ErrorCode::TokenInvalid).await;
        return Err(ApiError::new(ErrorCode::TokenInvalid, refused));
    };
    let (_, keyring) = state.signers.active(&mut tx).await?;
    tx.commit().await?;
    state.identity.distrust();
    let issuer = state.keys.minter.issuer().to_owned();
    Ok(Json(Enrolled { node_id: node.id, name: node.name, key_id: key.id(), issuer, keyring }))
}

fn entry(context: &Context, node: Uuid, enrolment: &Enrolment<'_>) -> NewEntry {
    let Enrolment { key_id, driver, .. } = enrolment;
    NewEntry {
        actor_id: Some(node),
        actor_type: Some(ActorType::Node.as_str()),
        action: ACTION.to_owned(),
        target: format!("node:{node}"),
        after: Some(serde_json::json!({ "key_id": key_id, "driver": driver })),
        ..context.entry()
    }
}
