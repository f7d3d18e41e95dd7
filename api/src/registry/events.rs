//! `POST /internal/v1/registry/events`: what the registry tells of itself. Its events are hints: they may be lost,
//! repeated or late, and whatever is decided is read from the registry again.

use api_types::RegistryNotification;
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use domain::{Digest, ErrorCode, artifact};
use sha2::Sha256;
use store::registry_pushes::{self, Push};

use crate::body;
use crate::edge::Context;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::state::State;
use crate::strangers;

const ACTION: &str = "notify_of_registry_events";

pub(crate) fn events() -> Endpoint {
    Endpoint::new(ACTION, "Take note of what happened in the registry", take_note)
        .body::<RegistryNotification>()
        .header("Authorization", "Bearer: the secret of the registry's configuration.")
        .answers_nothing("Noted.")
        .refuses(&[ErrorCode::TokenInvalid])
        .proves_itself()
}

async fn take_note(
    Shared(state): Shared<State>,
    context: Context,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let registry = &state.depot()?.registry;
    let secret = registry.events_secret().map(|secret| secret.expose().as_str());
    if !is_shown(secret, request.headers()) {
        let (target, code) = ("registry".to_owned(), ErrorCode::TokenInvalid);
        strangers::record(&state, &context, ACTION, target, code).await;
        return Err(ApiError::plain(code));
    }
    let bytes = body::bytes(request).await?;
    let told: RegistryNotification = serde_json::from_slice(&bytes).map_err(|_| {
        ApiError::new(ErrorCode::InvalidRequest, "The body is no notification of a registry.")
    })?;
    let mut tx = state.write().await?;
    for event in &told.events {
        let target = &event.target;
        // Layers are told of too; they belong to the manifests that name them.
        let is_manifest =
            target.media_type.as_deref().is_some_and(|kind| artifact::MANIFEST_TYPES.contains(&kind));
        let pushed = event.action == "push"
            && is_manifest
            && target.digest.as_deref().is_some_and(|digest| digest.parse::<Digest>().is_ok())
            && target.repository.starts_with(artifact::NAMESPACE);
        let Some(credential_id) = event.actor.name.parse().ok().filter(|_| pushed) else { continue };
        let push = Push {
            event_id: &event.id,
            credential_id,
            repository: &target.repository,
            digest: target.digest.as_deref().unwrap_or_default(),
            tag: target.tag.as_deref(),
            media_type: target.media_type.as_deref(),
            size_bytes: target.size,
        };
        registry_pushes::note(&mut tx, &push).await?;
    }
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Hashes are compared, so that how long it takes tells nothing.
fn is_shown(secret: Option<&str>, headers: &HeaderMap) -> bool {
    use sha2::Digest;
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = value.and_then(|value| value.strip_prefix("Bearer "));
    match (secret, shown) {
        (Some(secret), Some(shown)) => Sha256::digest(secret) == Sha256::digest(shown),
        _ => false,
    }
}
