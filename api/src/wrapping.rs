//! `/v1/sys/wrapping/unwrap` and `/lookup`, as Vault serves them: a wrapping token opens its secret once. Used, expired and
//! unknown tokens are told alike. Requests, answers and errors have Vault's shape, so that its clients work; they ask with
//! `PUT` where people ask with `POST`.

use api_types::{UnwrapRequest, VaultAnswer, VaultErrors};
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use clients::wrapping::{Wrapping, token_hash};
use domain::ErrorCode;
use serde_json::{Value, json};
use store::audit::{self, NewEntry};
use store::wrapped_secrets;
use uuid::Uuid;

use crate::body;
use crate::edge::{Context, OwnShape};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::state::State;
use crate::strangers;

const UNWRAP: &str = "unwrap_secret";

const BY_PUT: &str = "unwrap_secret_as_vaults_client";
const LOOK_UP: &str = "look_up_wrapped_secret";
const LOOK_UP_BY_PUT: &str = "look_up_wrapped_secret_as_vaults_client";
const LOOK_UP_BY_GET: &str = "look_up_own_wrapped_secret";

pub(crate) fn unwrap() -> Endpoint {
    opening(UNWRAP)
}

pub(crate) fn unwrap_by_put() -> Endpoint {
    opening(BY_PUT)
}

pub(crate) fn lookup() -> Endpoint {
    looking(LOOK_UP).body::<UnwrapRequest>()
}

pub(crate) fn lookup_by_put() -> Endpoint {
    looking(LOOK_UP_BY_PUT).body::<UnwrapRequest>()
}

pub(crate) fn lookup_by_get() -> Endpoint {
    looking(LOOK_UP_BY_GET)
}

fn opening(name: &'static str) -> Endpoint {
    endpoint(name, "Open a wrapped secret, once", open)
        .body::<UnwrapRequest>()
        .answers::<VaultAnswer>(200, "The secret, in `data`; it is gone now.")
        .answers::<VaultErrors>(403, "No client token was sent.")
}

fn looking(name: &'static str) -> Endpoint {
    endpoint(name, "What a wrapped secret is for, without opening it", look)
        .answers::<VaultAnswer>(200, "`data` has `creation_path`, `creation_time` and `creation_ttl`.")
}

fn endpoint<H, T>(name: &'static str, summary: &'static str, handler: H) -> Endpoint
where
    H: axum::handler::Handler<T, State>,
    T: 'static,
{
    Endpoint::new(name, summary, handler)
        .of_another_protocol()
        .proves_itself()
        .header("X-Vault-Token", "The wrapping token; `Authorization: Bearer` will do as well.")
        .answers::<VaultErrors>(400, "The token was used, has expired, or never was.")
        .answers::<VaultErrors>(500, "The platform failed.")
        .answers::<VaultErrors>(503, "The platform cannot serve this right now.")
}

async fn open(Shared(state): Shared<State>, context: Context, request: Request) -> Result<Response, Refused> {
    let client_token = client_token(request.headers());
    let named = token_in(request).await?;
    // As with Vault, a token in the body alone is not enough: whoever asks must bring one.
    let Some(client_token) = client_token else {
        return Err(Refused::new(StatusCode::FORBIDDEN, "missing client token"));
    };
    let token = named.unwrap_or(client_token);
    let Wrapping::Embedded(wrapper) = &state.depot()?.wrapping else { return Err(Refused::invalid()) };
    let mut tx = state.write().await.map_err(ApiError::from)?;
    let taken = wrapped_secrets::take(&mut tx, &token_hash(&token)).await.map_err(ApiError::from)?;
    let Some(taken) = taken else {
        tx.rollback().await.map_err(ApiError::from)?;
        // A token that was used before is how its owner learns that somebody else was first.
        strangers::record(&state, &context, UNWRAP, "wrapped_secret".to_owned(), ErrorCode::TokenInvalid)
            .await;
        return Err(Refused::invalid());
    };
    let secret = wrapper.unwrap(&token, &taken.sealed, &taken.purpose);
    let secret = secret.map_err(|fault| ApiError::internal(&fault))?;
    let data: Value = serde_json::from_slice(secret.expose()).map_err(|error| ApiError::internal(&error))?;
    let opened = NewEntry {
        org_id: taken.org_id,
        project_id: taken.project_id,
        action: UNWRAP.to_owned(),
        target: taken.target.unwrap_or(taken.purpose),
        after: taken.about,
        ..context.entry()
    };
    audit::insert(&mut tx, &opened).await.map_err(ApiError::from)?;
    // Told only once it is gone: an answer that is lost after this is lost for good, and an intent is asked for anew.
    tx.commit().await.map_err(ApiError::from)?;
    Ok(answer(data))
}

async fn look(Shared(state): Shared<State>, request: Request) -> Result<Response, Refused> {
    let client_token = client_token(request.headers());
    let token = token_in(request).await?.or(client_token).ok_or_else(Refused::invalid)?;
    let mut tx = state.read().await.map_err(ApiError::from)?;
    let found = wrapped_secrets::look(&mut tx, &token_hash(&token)).await.map_err(ApiError::from)?;
    tx.rollback().await.map_err(ApiError::from)?;
    let found = found.ok_or_else(Refused::invalid)?;
    Ok(answer(json!({
        "creation_path": found.purpose, "creation_time": found.created_at, "creation_ttl": found.ttl_seconds,
    })))
}

fn client_token(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || text(header::AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
    text("x-vault-token").or_else(bearer).filter(|token| !token.is_empty()).map(str::to_owned)
}

/// What the body names; none is well, and so are fields that Vault would ignore.
async fn token_in(request: Request) -> Result<Option<String>, Refused> {
    let bytes = body::bytes(request).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    // Vault's own client sends `null` where it has nothing to say, and an empty token where it has no other.
    let asked: Option<UnwrapRequest> = serde_json::from_slice(&bytes)
        .map_err(|_| Refused::new(StatusCode::BAD_REQUEST, "failed to parse JSON input"))?;
    let token = asked.and_then(|asked| asked.token).map(|token| token.expose().clone());
    Ok(token.filter(|token| !token.is_empty()))
}

fn answer(data: Value) -> Response {
    let body = VaultAnswer {
        request_id: Uuid::now_v7(),
        lease_id: String::new(),
        renewable: false,
        lease_duration: 0,
        data,
        wrap_info: Value::Null,
        warnings: Value::Null,
        auth: Value::Null,
    };
    ([(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

struct Refused {
    status: StatusCode,
    message: String,
}

impl Refused {
    fn new(status: StatusCode, message: &str) -> Refused {
        Refused { status, message: message.to_owned() }
    }

    fn invalid() -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, "wrapping token is not valid or does not exist")
    }
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Refused {
        let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Refused { status, message: error.message }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(VaultErrors { errors: vec![self.message] })).into_response();
        response.extensions_mut().insert(OwnShape);
        response
    }
}
