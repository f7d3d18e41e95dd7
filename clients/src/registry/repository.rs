//! One repository of a registry, over the distribution protocol. Whoever speaks, the platform itself or somebody with an
//! intent's credential, gets a token for this repository alone. Everything read is bounded and hashed here.

mod delete;
mod fault;
mod push;
mod upload;

pub use fault::RegistryFault;
pub use push::Pushed;

use std::sync::Arc;
use std::time::Duration;

use domain::{Digest, Secret};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use self::fault::{refused, unavailable};
use super::scope::{Access, Action};
use super::tokens::TokenServer;

/// Answers are short, so this is for all of one. Uploads have no such limit: they go on for as long as they move.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// How long nothing of an upload may move.
const STALL_LIMIT: Duration = Duration::from_secs(60);

/// What registries themselves accept at most.
const LARGEST_MANIFEST: usize = 4 * 1024 * 1024;

/// Registries answer 404 for a manifest whose type was not asked for.
const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

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
    patience: Duration,
}

/// One client for a process: it keeps connections and no credentials.
pub(super) fn http() -> Result<Client, RegistryFault> {
    // An error says that a provider is installed already: there is only one we compile.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(Duration::from_secs(5))
        .user_agent(concat!("gpuaas/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| RegistryFault::Unavailable(error.to_string()))
}

impl Repository {
    pub(super) fn own(http: Client, url: &str, name: &str, tokens: Arc<TokenServer>) -> Repository {
        Repository {
            http,
            url: url.to_owned(),
            name: name.to_owned(),
            speaker: Speaker::Platform(tokens),
            patience: STALL_LIMIT,
        }
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
            patience: STALL_LIMIT,
        })
    }

    /// How long an upload may stand still.
    #[must_use]
    pub fn patient_for(mut self, patience: Duration) -> Repository {
        self.patience = patience;
        self
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
        let request = request.bearer_auth(token.expose()).timeout(ANSWER_LIMIT);
        request.send().await.map_err(unavailable)
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
        let knock = self.http.get(format!("{}/v2/", self.url)).timeout(ANSWER_LIMIT);
        let knock = knock.send().await.map_err(unavailable)?;
        let challenge = header(knock.headers(), WWW_AUTHENTICATE.as_str());
        let (Some(realm), Some(service)) = (quoted(&challenge, "realm"), quoted(&challenge, "service"))
        else {
            return Err(RegistryFault::Refused("it does not say where its tokens are to be had".to_owned()));
        };
        let words: Vec<&str> = actions.iter().map(|action| action.as_str()).collect();
        let scope = format!("repository:{}:{}", self.name, words.join(","));
        let request = self.http.get(realm).query(&[("service", service), ("scope", &scope)]);
        let request = request.timeout(ANSWER_LIMIT);
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
    use super::quoted;

    #[test]
    fn a_challenge_names_realm_and_service() {
        let challenge = r#"Bearer realm="http://127.0.0.1:8080/registry/token",service="gpuaas-registry""#;
        assert_eq!(quoted(challenge, "realm"), Some("http://127.0.0.1:8080/registry/token"));
        assert_eq!(quoted(challenge, "service"), Some("gpuaas-registry"));
        assert_eq!(quoted("Basic", "realm"), None);
    }
}
