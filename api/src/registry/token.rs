//! `GET /registry/token`: the registry sends its clients here. Whoever shows an intent's credential gets a token for what
//! the credential reaches and they asked for; the rest is left out without a word, and the registry refuses it. Requests,
//! answers and errors have the shape of Docker's token protocol.

use api_types::{RegistryError, RegistryErrors, RegistryToken};
use axum::extract::{Query, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::TimeDelta;
use clients::registry::{Access, Action, Scope};
use domain::{ErrorCode, Permission, Scope as Place};
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use store::principals;
use store::registry_credentials::{self, Credential};
use uuid::Uuid;

use crate::edge::{Context, OwnShape};
use crate::endpoint::{Endpoint, text};
use crate::error::ApiError;
use crate::json::Json;
use crate::state::State;
use crate::strangers;

const ACTION: &str = "issue_registry_token";

const PULL: [Action; 1] = [Action::Pull];
const PUSH: [Action; 2] = [Action::Pull, Action::Push];

pub(crate) fn token() -> Endpoint {
    Endpoint::new(ACTION, "A token for the image registry, for an intent's credential", issue)
        .of_another_protocol()
        .proves_itself()
        .query("service", text(), "The registry that asks.")
        .query("scope", text(), "`repository:NAME:ACTIONS`; may be repeated, and absent for a mere login.")
        .query("account", text(), "Ignored: the credential says who asks.")
        .query("client_id", text(), "Ignored.")
        .query("offline_token", text(), "Ignored: credentials are short-lived themselves.")
        .header("Authorization", "Basic: the intent's id and the unwrapped password.")
        .answers::<RegistryToken>(200, "A token for what was asked and is allowed, which may be nothing.")
        .answers::<RegistryErrors>(400, "`UNSUPPORTED`: another registry's tokens are asked for.")
        .answers::<RegistryErrors>(401, "`UNAUTHORIZED`: no credential, or one that is not good.")
        .answers::<RegistryErrors>(500, "`UNKNOWN`.")
        .answers::<RegistryErrors>(503, "`UNAVAILABLE`.")
}

async fn issue(
    Shared(state): Shared<State>,
    context: Context,
    Query(asked): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let registry = &state.depot()?.registry;
    let named = |name: &'static str| asked.iter().filter(move |(n, _)| n == name).map(|(_, v)| v.as_str());
    if named("service").any(|service| service != registry.tokens().service) {
        return Err(Refused::because(
            StatusCode::BAD_REQUEST,
            "UNSUPPORTED",
            "this is another registry's name",
        ));
    }
    let Some(credential) = credential(&state, &headers).await? else {
        let target = "registry".to_owned();
        strangers::record(&state, &context, ACTION, target, ErrorCode::TokenInvalid).await;
        return Err(Refused::stranger());
    };
    let reach = Access::to(&credential.repository, if credential.may_push { &PUSH } else { &PULL });
    let granted: Vec<Access> =
        named("scope").flat_map(Scope::parse_all).filter_map(|scope| reach.grant(&scope)).collect();
    let left = TimeDelta::seconds(credential.seconds_left);
    let issued = registry.tokens().issue(&credential.id.to_string(), &granted, left);
    let issued = issued.map_err(|fault| ApiError::internal(&fault))?;
    let token = issued.token.expose().clone();
    let body = RegistryToken {
        access_token: token.clone(),
        token,
        expires_in: issued.expires_in,
        issued_at: issued.issued_at,
    };
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response())
}

async fn credential(state: &State, headers: &HeaderMap) -> Result<Option<Credential>, ApiError> {
    let Some((id, secret_hash)) = shown(headers) else { return Ok(None) };
    let mut tx = state.read().await?;
    let mut found = registry_credentials::find_good(&mut tx, id, &secret_hash).await?;
    if let Some(credential) = &found
        && !is_still_allowed(&mut tx, credential).await?
    {
        found = None;
    }
    tx.rollback().await?;
    Ok(found)
}

/// What somebody asked for for themselves ends with their right to ask for it.
async fn is_still_allowed(conn: &mut PgConnection, credential: &Credential) -> Result<bool, ApiError> {
    let Some(id) = credential.asked_by else { return Ok(true) };
    let principal = match principals::of_person(conn, id).await? {
        Some(person) => Some(person),
        None => principals::of_service_account(conn, id).await?.map(|machine| machine.principal),
    };
    let Some(principal) = principal else { return Ok(false) };
    let key =
        if credential.may_push { Permission::AppsArtifactPublish } else { Permission::AppsArtifactRead };
    let place = Place::Project { org: credential.org_id, project: credential.project_id };
    Ok(credential.of_release || principal.holds(key, place))
}

/// The user name, and the hash of the password, of HTTP Basic.
fn shown(headers: &HeaderMap) -> Option<(Uuid, Vec<u8>)> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (username, password) = decoded.split_once(':')?;
    let id = username.parse().ok()?;
    scheme.eq_ignore_ascii_case("basic").then(|| (id, Sha256::digest(password).to_vec()))
}

/// An error as registry clients print it.
struct Refused {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refused {
    fn because(status: StatusCode, code: &'static str, message: &str) -> Refused {
        Refused { status, code, message: message.to_owned() }
    }

    /// Which of it is wrong is not told.
    fn stranger() -> Refused {
        let message = "the credential is missing, wrong, used up or expired; ask for a new intent";
        Refused::because(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Refused {
        let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = if status == StatusCode::SERVICE_UNAVAILABLE { "UNAVAILABLE" } else { "UNKNOWN" };
        Refused { status, code, message: error.message }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let errors = vec![RegistryError { code: self.code.to_owned(), message: self.message }];
        let mut response = (self.status, Json(RegistryErrors { errors })).into_response();
        response.extensions_mut().insert(OwnShape);
        response
    }
}
