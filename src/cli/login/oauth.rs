//! The issuer's side of signing in: where its endpoints are, and how tokens are asked for (RFC 6749).

use domain::Secret;
use reqwest::Client as Http;
use serde::Deserialize;

use crate::cli::client::unreachable;
use crate::cli::session::Session;
use crate::failure::Failure;

/// The part of a discovery document that signing in needs.
#[derive(Debug, Clone, Deserialize)]
pub struct Discovery {
    pub token_endpoint: String,
    pub device_authorization_endpoint: Option<String>,
}

impl Discovery {
    pub async fn of(http: &Http, issuer: &str) -> Result<Discovery, Failure> {
        let url = format!("{issuer}/.well-known/openid-configuration");
        let answer = http.get(&url).send().await.map_err(|error| unreachable(issuer, &error))?;
        if !answer.status().is_success() {
            let why = format!(
                "{issuer} is no issuer of tokens ({}): name yours with --issuer URL",
                answer.status()
            );
            return Err(Failure::usage(why));
        }
        let understood = answer.json().await;
        understood.map_err(|_| Failure::server(format!("{url} is no discovery document")))
    }
}

/// A sign-in that has begun.
pub struct SignIn<'a> {
    pub http: &'a Http,
    pub discovery: &'a Discovery,
    pub client_id: &'a str,
}

#[derive(Deserialize)]
struct Granted {
    access_token: Secret<String>,
    #[serde(default)]
    refresh_token: Option<Secret<String>>,
}

/// An issuer's refusal, in the words of its protocol.
#[derive(Debug, Deserialize)]
pub struct Refused {
    pub error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl Refused {
    pub fn failure(self) -> Failure {
        let why = self.error_description.unwrap_or(self.error);
        Failure::auth(format!("the issuer refused: {why}"))
    }
}

impl SignIn<'_> {
    pub async fn by_password(&self, username: &str, password: &Secret<String>) -> Result<Session, Failure> {
        let form = [("grant_type", "password"), ("username", username), ("password", password.expose())];
        self.ask(&form).await?.map_err(Refused::failure)
    }

    /// Asks the token endpoint; a refusal may only mean that it is too soon.
    pub async fn ask(&self, form: &[(&str, &str)]) -> Result<Result<Session, Refused>, Failure> {
        let endpoint = &self.discovery.token_endpoint;
        let form = [form, &[("client_id", self.client_id), ("scope", "openid")]].concat();
        Ok(granted(self.http, endpoint, &form).await?.map(|granted| Session {
            access_token: granted.access_token,
            refresh_token: granted.refresh_token,
            token_endpoint: endpoint.clone(),
            client_id: self.client_id.to_owned(),
        }))
    }
}

/// A new access token. Issuers may replace the refresh token too; else it stays good.
pub async fn refresh(http: &Http, session: Session, token: &Secret<String>) -> Result<Session, Failure> {
    let client_id = session.client_id.clone();
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", token.expose()),
        ("client_id", client_id.as_str()),
    ];
    match granted(http, &session.token_endpoint, &form).await? {
        Ok(new) => Ok(Session {
            access_token: new.access_token,
            refresh_token: new.refresh_token.or(session.refresh_token),
            ..session
        }),
        Err(_) => Err(Failure::auth("the sign-in has ended: run `gpuaas login`")),
    }
}

async fn granted(
    http: &Http,
    endpoint: &str,
    form: &[(&str, &str)],
) -> Result<Result<Granted, Refused>, Failure> {
    let answer =
        http.post(endpoint).form(form).send().await.map_err(|error| unreachable(endpoint, &error))?;
    let strange = |_| Failure::server(format!("{endpoint} answers in a way that is not understood"));
    if answer.status().is_success() {
        Ok(Ok(answer.json().await.map_err(strange)?))
    } else {
        Ok(Err(answer.json().await.map_err(strange)?))
    }
}
