//! `POST /api/v1/auth/service-account/token`: a short token for whoever proves a registered key.
//!
//! Why a proof failed is told only as far as it helps its holder: an unknown account, an unknown key and a wrong
//! signature look alike.

use api_types::{AccessToken, ServiceAccountTokenRequest};
use axum::extract::{FromRequest, Request, State as Shared};
use axum::response::{IntoResponse, Response};
use clients::TokenFault;
use clients::assertion::{self, Expected, PublicKey};
use domain::{ErrorCode, Secret};
use sqlx::PgConnection;
use store::service_accounts::{self, ServiceAccount};
use store::{audit, service_account_keys, used_assertions};

use super::{UNCACHED, entry, issue, line_breaks, record_denial};
use crate::body;
use crate::edge::Context;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::identity::refused;
use crate::json::Json;
use crate::state::State;
use crate::strangers;

const ACTION: &str = "issue_service_account_token";

pub(crate) fn service_account_token() -> Endpoint {
    Endpoint::new(ACTION, "A short-lived token for the holder of a service account's key", token)
        .proves_itself()
        .body::<ServiceAccountTokenRequest>()
        .exactly_one_of::<ServiceAccountTokenRequest>(&["assertion", "private_key_pem"])
        .answers::<AccessToken>(200, "The token.")
        .refuses(&[ErrorCode::TokenInvalid, ErrorCode::TokenExpired, ErrorCode::TokenScopeInvalid])
}

async fn token(
    Shared(state): Shared<State>,
    context: Context,
    Lenient(asked): Lenient,
) -> Result<Response, ApiError> {
    let proof = Proof::of(&asked)?;
    let mut tx = state.write().await?;
    let known = service_accounts::find_locked(&mut tx, asked.service_account_id).await?;
    let mut entry = entry(&context, ACTION, asked.service_account_id, known.as_ref());
    match prove(&state, &mut tx, known.as_ref(), &asked.key_id, &proof).await {
        Ok(account) => {
            let token = issue(&state, &mut tx, (account, Some(asked.key_id.as_str())), i64::MAX).await?;
            entry.after = Some(serde_json::json!({ "key_id": asked.key_id, "expires_at": token.expires_at }));
            audit::insert(&mut tx, &entry).await?;
            tx.commit().await?;
            Ok((UNCACHED, Json(token)).into_response())
        }
        Err(refusal) => {
            tx.rollback().await?;
            match (refusal.code.status(), known) {
                (401, Some(_)) => record_denial(&state, entry, refusal.code).await?,
                // Whoever makes up accounts makes up as many as they like.
                (401, None) => strangers::record(&state, &context, ACTION, entry.target, refusal.code).await,
                _ => {}
            }
            Err(refusal)
        }
    }
}

enum Proof<'a> {
    Assertion(&'a Secret<String>),
    PrivateKey(&'a Secret<String>),
}

impl<'a> Proof<'a> {
    fn of(asked: &'a ServiceAccountTokenRequest) -> Result<Proof<'a>, ApiError> {
        match (&asked.assertion, &asked.private_key_pem) {
            (Some(assertion), None) => Ok(Proof::Assertion(assertion)),
            (None, Some(key)) => Ok(Proof::PrivateKey(key)),
            _ => Err(ApiError::invalid("", "must have exactly one of assertion and private_key_pem")),
        }
    }
}

async fn prove<'a>(
    state: &State,
    conn: &mut PgConnection,
    known: Option<&'a ServiceAccount>,
    key_id: &str,
    proof: &Proof<'_>,
) -> Result<&'a ServiceAccount, ApiError> {
    let unproven = || ApiError::new(ErrorCode::TokenInvalid, "The key and the proof do not belong together.");
    let account = known.ok_or_else(unproven)?;
    let public_key = service_account_keys::public_key(conn, account.id, key_id).await?;
    let public_key = public_key.ok_or_else(unproven)?;
    match proof {
        Proof::PrivateKey(key) => {
            assertion::possesses(key.expose(), &public_key).map_err(|_| unproven())?;
        }
        Proof::Assertion(signed) => {
            let key = PublicKey::from_pem(&public_key).map_err(|fault| ApiError::internal(&fault))?;
            let subject = account.id.to_string();
            let audience = state.keys.minter.issuer();
            let expected = Expected { subject: &subject, audience, key_id, now: state.keys.clock.now() };
            let shown = assertion::verify(signed.expose(), &key, &expected).map_err(refused)?;
            let first = used_assertions::use_up(conn, account.id, &shown.jti, shown.replayable_until).await?;
            if !first {
                return Err(refused(TokenFault::Invalid("the assertion was used before")));
            }
        }
    }
    // Only the holder of the key learns this.
    if !account.is_active() {
        return Err(ApiError::new(ErrorCode::TokenInvalid, "The service account is disabled."));
    }
    Ok(account)
}

/// The body of this route alone may hold raw line breaks inside its strings: a shell puts a key file there as it is.
struct Lenient(ServiceAccountTokenRequest);

impl<S: Send + Sync> FromRequest<S> for Lenient {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Lenient, ApiError> {
        let (head, content) = request.into_parts();
        let strict = Request::from_parts(head.clone(), content);
        let bytes = body::bytes(strict).await?;
        let repaired = Request::from_parts(head, line_breaks::escaped(&bytes).into());
        body::read(repaired).await.map(|(_, asked)| Lenient(asked))
    }
}
