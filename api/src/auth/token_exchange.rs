//! `POST /api/v1/auth/token-exchange` (RFC 8693): a pipeline shows its own issuer's token and gets a short one of the
//! service account that a federated trust names. Requests and errors have the shape of RFC 6749.

use api_types::{AccessToken, OAuthError, TokenExchangeRequest};
use axum::Form;
use axum::extract::{FromRequest, Request, State as Shared};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use clients::TokenFault;
use clients::oidc::OidcClaims;
use domain::ErrorCode;
use serde_json::{Value, json};
use store::federated_trusts::{self, FederatedTrust};
use store::service_accounts::{self, ServiceAccount};
use store::{audit, audit::NewEntry};
use uuid::Uuid;

use super::pattern::fits;
use super::{LONGEST_EXCHANGED, UNCACHED, entry, issue, record_denial};
use crate::body;
use crate::edge::{Context, OwnShape};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::state::State;
use crate::strangers;

const ACTION: &str = "exchange_token";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const SUBJECT_TYPES: [&str; 2] =
    ["urn:ietf:params:oauth:token-type:jwt", "urn:ietf:params:oauth:token-type:id_token"];

pub(crate) fn token_exchange() -> Endpoint {
    Endpoint::new(ACTION, "A short-lived token in exchange for an outside issuer's (RFC 8693)", exchange)
        .proves_itself()
        .form::<TokenExchangeRequest>()
        .answers::<AccessToken>(200, "The token; it lives at most 15 minutes.")
        .answers::<OAuthError>(
            400,
            "`invalid_request`, `unsupported_grant_type` or `invalid_grant` (RFC 6749).",
        )
        .answers::<OAuthError>(500, "`server_error`.")
        .answers::<OAuthError>(503, "`temporarily_unavailable`: the issuer or the platform does not answer.")
}

async fn exchange(
    Shared(state): Shared<State>,
    context: Context,
    request: Request,
) -> Result<Response, Refused> {
    let asked = form(request).await?;
    if asked.grant_type != GRANT {
        return Err(Refused::new("unsupported_grant_type", format!("grant_type must be {GRANT}")));
    }
    if !SUBJECT_TYPES.contains(&asked.subject_token_type.as_str()) {
        return Err(Refused::new("invalid_request", "subject_token_type must be a jwt or id_token"));
    }
    let found = trust(&state, asked.audience).await?;
    // The issuer is asked before a transaction is opened: it may be slow.
    match judge(&state, found.as_ref(), &asked).await {
        Ok((trust, claims)) => mint(&state, &context, trust, &claims).await,
        Err(refusal) => {
            deny(&state, &context, found.as_ref(), asked.audience, &refusal).await?;
            Err(refusal)
        }
    }
}

/// The body is read as any other: within its limits of size and time.
async fn form(request: Request) -> Result<TokenExchangeRequest, Refused> {
    let (head, content) = request.into_parts();
    let read = body::bytes(Request::from_parts(head.clone(), content)).await;
    let bytes = read.map_err(|error| Refused::new("invalid_request", error.message))?;
    let arrived = Request::from_parts(head, bytes.into());
    let form = Form::from_request(arrived, &()).await;
    form.map(|Form(asked)| asked).map_err(|rejection| Refused::new("invalid_request", rejection.body_text()))
}

async fn trust(state: &State, id: Uuid) -> Result<Option<FederatedTrust>, ApiError> {
    let mut tx = state.read().await?;
    let found = federated_trusts::find(&mut tx, id).await?;
    tx.rollback().await?;
    Ok(found)
}

async fn judge<'a>(
    state: &State,
    trust: Option<&'a FederatedTrust>,
    asked: &TokenExchangeRequest,
) -> Result<(&'a FederatedTrust, OidcClaims), Refused> {
    let stranger = || Refused::new("invalid_grant", "no trust accepts this token");
    let trust = trust.ok_or_else(stranger)?;
    let token = asked.subject_token.expose();
    let verified = state.keys.verifier.verify_federated(token, &trust.issuer, &trust.audience).await;
    let claims = verified.map_err(|fault| match fault {
        TokenFault::IssuerUnavailable { .. } => Refused::unavailable("the issuer does not answer right now"),
        fault => Refused::new("invalid_grant", fault.to_string()),
    })?;
    if fits(&trust.subject_pattern, &claims.subject) && claims_fit(&trust.claims, &claims) {
        Ok((trust, claims))
    } else {
        Err(stranger())
    }
}

fn claims_fit(wanted: &Value, claims: &OidcClaims) -> bool {
    wanted.as_object().into_iter().flatten().all(|(name, pattern)| {
        let said =
            claims.claims.get(name).map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
        said.is_some_and(|said| fits(pattern.as_str().unwrap_or_default(), &said))
    })
}

async fn mint(
    state: &State,
    context: &Context,
    trust: &FederatedTrust,
    claims: &OidcClaims,
) -> Result<Response, Refused> {
    let mut tx = state.write().await.map_err(ApiError::from)?;
    let account =
        service_accounts::find_locked(&mut tx, trust.service_account_id).await.map_err(ApiError::from)?;
    let Some(account) = account.filter(ServiceAccount::is_active) else {
        tx.rollback().await.map_err(ApiError::from)?;
        let refusal = Refused::new("invalid_grant", "the service account is disabled or deleted");
        deny(state, context, Some(trust), trust.id, &refusal).await?;
        return Err(refusal);
    };
    let mut token = issue(state, &mut tx, (&account, None), LONGEST_EXCHANGED).await?;
    token.issued_token_type = Some(ACCESS_TOKEN.to_owned());
    let mut entry = entry(context, ACTION, account.id, Some(&account));
    entry.after = Some(json!({
        "federated_trust": trust.id, "issuer": claims.issuer, "subject": claims.subject,
        "expires_at": token.expires_at,
    }));
    audit::insert(&mut tx, &entry).await.map_err(ApiError::from)?;
    tx.commit().await.map_err(ApiError::from)?;
    Ok((UNCACHED, Json(token)).into_response())
}

async fn deny(
    state: &State,
    context: &Context,
    trust: Option<&FederatedTrust>,
    asked: Uuid,
    refusal: &Refused,
) -> Result<(), ApiError> {
    let target = format!("federated_trust:{asked}");
    let Some(trust) = trust else {
        strangers::record(state, context, ACTION, target, ErrorCode::TokenInvalid).await;
        return Ok(());
    };
    let entry = NewEntry {
        org_id: Some(trust.org_id),
        project_id: Some(trust.project_id),
        action: ACTION.to_owned(),
        target,
        reason: Some(refusal.description.clone()),
        ..context.entry()
    };
    record_denial(state, entry, ErrorCode::TokenInvalid).await
}

/// An error of RFC 6749. Descriptions never quote the token.
struct Refused {
    status: StatusCode,
    error: &'static str,
    description: String,
}

impl Refused {
    fn new(error: &'static str, description: impl Into<String>) -> Refused {
        Refused { status: StatusCode::BAD_REQUEST, error, description: description.into() }
    }

    fn unavailable(description: &str) -> Refused {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Refused { status, error: "temporarily_unavailable", description: description.to_owned() }
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Refused {
        if error.code == ErrorCode::ServiceUnavailable {
            return Refused::unavailable("the platform cannot serve this right now");
        }
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Refused { status, error: "server_error", description: error.message }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = OAuthError { error: self.error.to_owned(), error_description: self.description };
        let mut answer = (self.status, UNCACHED, Json(body)).into_response();
        answer.extensions_mut().insert(OwnShape);
        answer
    }
}
