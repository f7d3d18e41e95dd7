//! A credential for one repository, made in the transaction of its intent and handed over so that it is fetched once.

use api_types::WrappedCredential;
use rand::Rng;
use rand::distr::Alphanumeric;
use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use store::registry_credentials::{self, NewCredential};
use store::wrapped_secrets::About;
use uuid::Uuid;

use crate::depot::{Depot, Wanted};
use crate::error::ApiError;

/// 256 random bits and more, in letters and digits alone: some clients mangle anything else.
const LENGTH: usize = 43;

pub(super) struct For<'a> {
    /// Of the intent, and so the user name.
    pub(super) id: Uuid,
    pub(super) place: (Uuid, Uuid),
    pub(super) repository: &'a str,
    pub(super) may_push: bool,
    pub(super) ttl_seconds: i32,
}

pub(super) async fn give(
    depot: &Depot,
    conn: &mut PgConnection,
    asked: &For<'_>,
) -> Result<WrappedCredential, ApiError> {
    let password: String = rand::rng().sample_iter(Alphanumeric).take(LENGTH).map(char::from).collect();
    let new = NewCredential {
        id: asked.id,
        org_id: asked.place.0,
        project_id: asked.place.1,
        repository: asked.repository,
        may_push: asked.may_push,
        secret_hash: &Sha256::digest(&password),
        ttl_seconds: asked.ttl_seconds,
    };
    registry_credentials::insert(conn, &new).await?;
    let secret = json!({ "username": asked.id, "password": password, "registry": depot.registry.host });
    let (purpose, kind) = if asked.may_push {
        ("artifact/publish", "publish_intent")
    } else {
        ("artifact/pull", "pull_intent")
    };
    let about = About {
        org_id: Some(asked.place.0),
        project_id: Some(asked.place.1),
        target: Some(format!("{kind}:{}", asked.id)),
        told: Some(json!({ "repository": asked.repository, "may_push": asked.may_push })),
    };
    let wanted = Wanted { purpose, ttl_seconds: asked.ttl_seconds, about: &about };
    let handed = depot.hand_over(conn, &secret, &wanted).await?;
    Ok(WrappedCredential {
        mode: "wrapped".to_owned(),
        token: Some(handed.token.expose().clone()),
        unwrap_path: handed.unwrap_path,
    })
}
