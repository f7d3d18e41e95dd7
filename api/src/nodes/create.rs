//! `POST A/nodes`: the node's row, and the one time its enrolment token is told. Only the token's digest is kept.

use api_types::{NewNode, NodeWithToken};
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use domain::{ErrorCode, Secret};
use rand::RngCore;
use sha2::{Digest, Sha256};
use store::nodes as table;
use uuid::Uuid;

use super::shown;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::mutation::{Answer, Change, Mutation};
use crate::router::ADMIN;

const TOKEN_LIVES: TimeDelta = TimeDelta::hours(24);

pub(crate) fn create() -> Endpoint {
    Endpoint::new("create_node", "Make a node and the token that enrols it", make)
        .body::<NewNode>()
        .answers::<NodeWithToken>(201, "The node; `enrolment_token` is told this once.")
        .refuses(&[ErrorCode::AlreadyExists])
}

async fn make(mut change: Mutation<NewNode>) -> Result<Response, ApiError> {
    let token = enrolment_token();
    let new = table::NewNode {
        id: Uuid::now_v7(),
        name: &change.body.name,
        enrolment_hash: &hash(token.expose()),
        enrolment_lives: TOKEN_LIVES,
        created_by: change.caller.principal().id,
    };
    let node = shown(table::insert(&mut change.tx, &new).await?)?;
    let reason = change.body.reason.take();
    let told = Change::of("node", node.id).to(&node).because(reason);
    let location = format!("{ADMIN}/nodes/{}", node.id);
    let body = NodeWithToken {
        enrolment_expires_at: node.created_at + TOKEN_LIVES,
        node,
        enrolment_token: Some(token.expose().clone()),
        secret_already_delivered: false,
    };
    change.commit(told, Answer::created(location, &body)?.once(&["enrolment_token"])).await
}

/// 256 random bits, so that a digest is all that must be kept to know it again.
fn enrolment_token() -> Secret<String> {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    Secret::new(format!("enrol-{}", BASE64_URL_SAFE_NO_PAD.encode(bytes)))
}

/// What is kept of an enrolment token.
pub(crate) fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
