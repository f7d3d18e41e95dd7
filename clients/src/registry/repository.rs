//! One repository of a registry, over the distribution protocol. Whoever speaks, the platform itself or somebody with an
//! intent's credential, gets a token for this repository alone. Everything read is bounded and hashed here.

mod delete;
mod push;

pub use push::Pushed;

use std::sync::Arc;
use std::time::Duration;

use domain::{Digest, Secret};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::scope::{Access, Action};
use super::tokens::TokenServer;

/// What registries themselves accept at most.
const LARGEST_MANIFEST: usize = 4 * 1024 * 1024;

/// Registries answer 404 for a manifest whose type was not asked for.
const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryFault {
    #[error("the registry has no {what} {reference} in {repository}")]
    Absent { what: &'static str, reference: String, repository: String },
    #[error("the registry's {what} {reference} has more than {most} bytes")]
    TooLarge { what: &'static str, reference: String, most: usize },
    /// The registry gave other bytes than it was asked for.
    #[error("the registry answered {found} when asked for {asked}")]
    Mismatch { asked: Digest, found: Digest },
    #[error("the registry refused: {0}")]
    Refused(String),
    #[error("the registry's storage is full or read-only: {0}")]
    StorageFull(String),
    /// Says nothing about what was asked for.
    #[error("the registry does not answer: {0}")]
    Unavailable(String),
}

impl RegistryFault {
    /// Whether it says something of what was asked for, rather than of the registry, its configuration or the clocks.
    pub fn is_verdict(&self) -> bool {
        match self {
            RegistryFault::Absent { .. }
            | RegistryFault::TooLarge { .. }
            | RegistryFault::Mismatch { .. } => true,
            RegistryFault::Refused(_) | RegistryFault::StorageFull(_) | RegistryFault::Unavailable(_) => {
                false
            }
        }
    }
}

#[derive(Debug, Clone)]
pub struct Manifest {
    /// Of the bytes, computed here.
    pub digest: Digest,
    /// As the registry names it.
    pub media_type: String,
    pub bytes: Vec<u8>,
}

/// Who speaks.
#[derive(Debug, Clone)]
enum Speaker {
    Platform(Arc<TokenServer>),
    Holder { username: String, password: Arc<Secret<String>> },
}

#[derive(Debug, Clone)]
pub struct Repository {
    http: Client,
    url: String,
    pub name: String,
    speaker: Speaker,
}

/// One client for a process: it keeps connections and no credentials.
pub(super) fn http() -> Result<Client, RegistryFault> {
    // An error says that a provider is installed already: there is only one we compile.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .read_timeout(Duration::from_secs(30))
        .user_agent(concat!("gpuaas/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| RegistryFault::Unavailable(error.to_string()))
}

impl Repository {
    pub(super) fn own(http: Client, url: &str, name: &str, tokens: Arc<TokenServer>) -> Repository {
        Repository { http, url: url.to_owned(), name: name.to_owned(), speaker: Speaker::Platform(tokens) }
    }

    /// For somebody who was given a credential for this repository.
    pub fn with_credential(
        url: &str,
        name: &str,
        username: &str,
        password: Secret<String>,
    ) -> Result<Repository, RegistryFault> {
        let speaker = Speaker::Holder { username: username.to_owned(), password: Arc::new(password) };
        Ok(Repository {
            http: http()?,
            url: url.trim_end_matches('/').to_owned(),
            name: name.to_owned(),
            speaker,
        })
    }

    /// By digest or by tag; a digest is compared with what came. `None` if there is none.
    pub async fn find_manifest(&self, reference: &str) -> Result<Option<Manifest>, RegistryFault> {
        match self.manifest(reference).await {
            Ok(manifest) => Ok(Some(manifest)),
            Err(RegistryFault::Absent { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    pub async fn manifest(&self, reference: &str) -> Result<Manifest, RegistryFault> {
        let answer = self.get(&format!("manifests/{reference}"), "manifest", reference).await?;
        let media_type = header(answer.headers(), CONTENT_TYPE.as_str());
        let bytes = bounded(answer, "manifest", reference, LARGEST_MANIFEST).await?;
        let digest = Digest::from_sha256(Sha256::digest(&bytes).into());
        agree(reference, &digest)?;
        Ok(Manifest { digest, media_type, bytes })
    }

    /// A small blob, such as a signature; layers of images are not read here.
    pub async fn blob(&self, digest: &Digest, most: usize) -> Result<Vec<u8>, RegistryFault> {
        let answer = self.get(&format!("blobs/{digest}"), "blob", digest.as_str()).await?;
        let bytes = bounded(answer, "blob", digest.as_str(), most).await?;
        agree(digest.as_str(), &Digest::from_sha256(Sha256::digest(&bytes).into()))?;
        Ok(bytes)
    }

    /// The manifests that name this one as their subject, as the registry lists them; `None` where it has no such list.
    pub async fn referrers(&self, digest: &Digest) -> Result<Option<Vec<u8>>, RegistryFault> {
        match self.get(&format!("referrers/{digest}"), "list of referrers", digest.as_str()).await {
            Ok(answer) => {
                bounded(answer, "list of referrers", digest.as_str(), LARGEST_MANIFEST).await.map(Some)
            }
            // Registries of older days answer that they know no such method.
            Err(RegistryFault::Absent { .. } | RegistryFault::StorageFull(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    async fn get(&self, path: &str, what: &'static str, reference: &str) -> Result<Response, RegistryFault> {
        let request = self.request(Method::GET, path).header(ACCEPT, format!("{MANIFEST_TYPES}, */*"));
        let answer = self.send(request, &[Action::Pull]).await?;
        match answer.status() {
            StatusCode::OK => Ok(answer),
            StatusCode::NOT_FOUND => Err(RegistryFault::Absent {
                what,
                reference: reference.to_owned(),
                repository: self.name.clone(),
            }),
            _ => Err(refused(answer).await),
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/v2/{}/{path}", self.url, self.name))
    }

    async fn send(&self, request: RequestBuilder, actions: &[Action]) -> Result<Response, RegistryFault> {
        let token = self.token(actions).await?;
        request.bearer_auth(token.expose()).send().await.map_err(unavailable)
    }

    async fn token(&self, actions: &[Action]) -> Result<Secret<String>, RegistryFault> {
        match &self.speaker {
            Speaker::Platform(tokens) => tokens
                .own(Access::to(&self.name, actions))
                .map_err(|fault| RegistryFault::Unavailable(fault.to_string())),
            Speaker::Holder { username, password } => self.log_in(username, password, actions).await,
        }
    }

    /// As docker does: the registry says where its tokens are to be had.
    async fn log_in(
        &self,
        username: &str,
        password: &Secret<String>,
        actions: &[Action],
    ) -> Result<Secret<String>, RegistryFault> {
        let knock = self.http.get(format!("{}/v2/", self.url)).send().await.map_err(unavailable)?;
        let challenge = header(knock.headers(), WWW_AUTHENTICATE.as_str());
        let (Some(realm), Some(service)) = (quoted(&challenge, "realm"), quoted(&challenge, "service"))
        else {
            return Err(RegistryFault::Refused("it does not say where its tokens are to be had".to_owned()));
        };
        let words: Vec<&str> = actions.iter().map(|action| action.as_str()).collect();
        let scope = format!("repository:{}:{}", self.name, words.join(","));
        let request = self.http.get(realm).query(&[("service", service), ("scope", &scope)]);
        let answer =
            request.basic_auth(username, Some(password.expose())).send().await.map_err(unavailable)?;
        if answer.status() != StatusCode::OK {
            return Err(refused(answer).await);
        }
        #[derive(Deserialize)]
        struct Issued {
            token: Secret<String>,
        }
        let issued: Issued = answer.json().await.map_err(unavailable)?;
        Ok(issued.token)
    }
}

fn agree(reference: &str, found: &Digest) -> Result<(), RegistryFault> {
    match reference.parse::<Digest>() {
        Ok(asked) if asked != *found => Err(RegistryFault::Mismatch { asked, found: found.clone() }),
        _ => Ok(()),
    }
}

async fn bounded(
    mut answer: Response,
    what: &'static str,
    reference: &str,
    most: usize,
) -> Result<Vec<u8>, RegistryFault> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(unavailable)? {
        if bytes.len() + chunk.len() > most {
            return Err(RegistryFault::TooLarge { what, reference: reference.to_owned(), most });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// A server's own trouble passes; anything else it says is its answer.
async fn refused(answer: Response) -> RegistryFault {
    let status = answer.status();
    judged(status, &bounded(answer, "error", "", 4096).await.unwrap_or_default())
}

fn judged(status: StatusCode, body: &[u8]) -> RegistryFault {
    let said = format!("{status} {}", first_message(body).unwrap_or_default());
    match status {
        StatusCode::INSUFFICIENT_STORAGE | StatusCode::METHOD_NOT_ALLOWED => RegistryFault::StorageFull(said),
        _ if is_full(&said) => RegistryFault::StorageFull(said),
        _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            RegistryFault::Unavailable(said)
        }
        _ => RegistryFault::Refused(said),
    }
}

/// In words, or by the number that Linux has for it.
fn is_full(said: &str) -> bool {
    ["no space left", r#""Err":28}"#, r#""Err":28,"#].iter().any(|sign| said.contains(sign))
}

/// `{"errors": [{"code", "message", "detail"}]}`, as every registry answers. The detail is of any shape; what a full disk
/// says is in it.
fn first_message(body: &[u8]) -> Option<String> {
    let said: Value = serde_json::from_slice(body).ok()?;
    let first = said.get("errors")?.get(0)?;
    let word = |name: &str| first.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let detail = first.get("detail").filter(|detail| !detail.is_null());
    let detail = detail.map(|detail| detail.as_str().map_or_else(|| detail.to_string(), str::to_owned));
    let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
    Some(format!("{}: {}{detail}", word("code"), word("message")))
}

/// Never the address itself: it may hold a signature.
fn unavailable(error: reqwest::Error) -> RegistryFault {
    let why = if error.is_timeout() { "it did not answer in time" } else { "the connection failed" };
    RegistryFault::Unavailable(why.to_owned())
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// `name="value"` of a challenge.
fn quoted<'a>(challenge: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = challenge.split_once(&format!("{name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_full_is_told_apart_from_a_registry_that_is_away() {
        let body = br#"{"errors":[{"code":"UNKNOWN","message":"unknown error","detail":
            {"DriverName":"filesystem","Enclosed":{"Op":"mkdir","Path":"/var/lib/registry","Err":28}}}]}"#;
        let full = judged(StatusCode::INTERNAL_SERVER_ERROR, body);
        assert!(matches!(full, RegistryFault::StorageFull(_)), "{full}");
        let word = br#"{"errors":[{"code":"UNKNOWN","message":"unknown error","detail":"write: no space left on device"}]}"#;
        assert!(matches!(judged(StatusCode::INTERNAL_SERVER_ERROR, word), RegistryFault::StorageFull(_)));
        let away = br#"{"errors":[{"code":"UNAVAILABLE","message":"service unavailable"}]}"#;
        assert!(matches!(judged(StatusCode::SERVICE_UNAVAILABLE, away), RegistryFault::Unavailable(_)));
        assert!(matches!(judged(StatusCode::FORBIDDEN, b""), RegistryFault::Refused(_)));
    }

    #[test]
    fn a_challenge_names_realm_and_service() {
        let challenge = r#"Bearer realm="http://127.0.0.1:8080/registry/token",service="gpuaas-registry""#;
        assert_eq!(quoted(challenge, "realm"), Some("http://127.0.0.1:8080/registry/token"));
        assert_eq!(quoted(challenge, "service"), Some("gpuaas-registry"));
        assert_eq!(quoted("Basic", "realm"), None);
    }
}
