//! The issuer of `gpuaas dev`, for five people whose passwords are their names. It exists only inside this role, so no
//! other way of starting the binary can reach it. It speaks OIDC as others do — discovery, keys, password, device and
//! code grants — and the platform trusts it as it would any other issuer.

mod authorize;
mod device;
mod oauth_error;
mod page;
mod people;
mod token;

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use clients::Clock;
use clients::oidc::{Issuer as TrustedIssuer, IssuerKeys};
use clients::signing::{SigningKey, SigningKeys};
use serde_json::json;

pub use self::people::{PEOPLE, Person, Role};
use super::data::DataDir;
use crate::failure::Failure;

/// What the platform records the people under, whatever port `gpuaas dev` runs on.
pub const NAME: &str = "gpuaas-dev";
/// The one client: public, so it has no secret.
const CLIENT: &str = "gpuaas";
const KEY_FILE: &str = "issuer-key.pem";
const REALM: &str = "/realms/gpuaas";

pub struct Issuer {
    /// `http://127.0.0.1:8080/realms/gpuaas`
    url: String,
    keys: SigningKeys,
    clock: Arc<dyn Clock>,
    codes: authorize::Codes,
    devices: device::Devices,
}

impl Issuer {
    /// Its key is made once and kept in the data directory, so tokens outlive a restart.
    pub fn open(data: &DataDir, server: &str, clock: Arc<dyn Clock>) -> Result<Issuer, Failure> {
        let pem = data.secret(KEY_FILE, || SigningKey::generate()?.private_key_pem())?;
        let key = SigningKey::from_pem(pem.expose()).map_err(|why| {
            Failure::usage(format!("cannot use {}: {why}", data.path.join(KEY_FILE).display()))
        })?;
        Ok(Issuer {
            url: format!("{server}{REALM}"),
            keys: SigningKeys::one(key),
            clock,
            codes: authorize::Codes::default(),
            devices: device::Devices::default(),
        })
    }

    /// What makes the platform believe this issuer. It lives in the same process, so its keys need no asking for.
    pub fn trust(&self) -> TrustedIssuer {
        TrustedIssuer {
            name: NAME.to_owned(),
            url: self.url.clone(),
            audiences: vec![CLIENT.to_owned()],
            keys: IssuerKeys::Given(self.keys.public()),
        }
    }

    pub fn routes(self) -> Router {
        Router::new()
            .route(&at("/.well-known/openid-configuration"), get(discovery))
            .route(&at("/protocol/openid-connect/certs"), get(certificates))
            .route(&at("/protocol/openid-connect/token"), post(token::token))
            .route(&at("/protocol/openid-connect/auth"), get(authorize::ask).post(authorize::answer))
            .route(&at("/protocol/openid-connect/auth/device"), post(device::begin))
            .route(&at("/device"), get(device::ask).post(device::answer))
            .with_state(Arc::new(self))
    }
}

fn at(path: &str) -> String {
    format!("{REALM}{path}")
}

async fn discovery(State(issuer): State<Arc<Issuer>>) -> impl IntoResponse {
    let url = &issuer.url;
    let connect = format!("{url}/protocol/openid-connect");
    Json(json!({
        "issuer": url,
        "authorization_endpoint": format!("{connect}/auth"),
        "token_endpoint": format!("{connect}/token"),
        "jwks_uri": format!("{connect}/certs"),
        "device_authorization_endpoint": format!("{connect}/auth/device"),
        "grant_types_supported": ["authorization_code", "password", device::GRANT],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "id_token_signing_alg_values_supported": ["EdDSA"],
        "subject_types_supported": ["public"],
        "scopes_supported": ["openid", "profile"],
        "claims_supported": ["iss", "sub", "aud", "exp", "iat", "nonce", "preferred_username"],
    }))
}

async fn certificates(State(issuer): State<Arc<Issuer>>) -> impl IntoResponse {
    Json(issuer.keys.public())
}

#[cfg(test)]
mod tests;
