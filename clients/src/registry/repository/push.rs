//! Pushing: blobs first, then the manifest that names them. What the registry has already is not sent again, so a push
//! that broke off goes on where it was.

use domain::Digest;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::{Body, Method, StatusCode, Url};
use sha2::{Digest as _, Sha256};

use super::{RegistryFault, Repository, header, refused, unavailable};
use crate::registry::scope::Action;

const PUSH: [Action; 2] = [Action::Pull, Action::Push];

/// Whether anything had to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    Sent,
    There,
}

impl Repository {
    pub async fn has_blob(&self, digest: &Digest) -> Result<bool, RegistryFault> {
        let request = self.request(Method::HEAD, &format!("blobs/{digest}"));
        let answer = self.send(request, &PUSH).await?;
        match answer.status() {
            StatusCode::OK => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            _ => Err(refused(answer).await),
        }
    }

    /// `body` is asked for only if the registry lacks the blob; it must have this digest and size.
    pub async fn push_blob<B: Into<Body>>(
        &self,
        digest: &Digest,
        size: u64,
        body: impl FnOnce() -> B,
    ) -> Result<Pushed, RegistryFault> {
        if self.has_blob(digest).await? {
            return Ok(Pushed::There);
        }
        let begun = self.send(self.request(Method::POST, "blobs/uploads/"), &PUSH).await?;
        if begun.status() != StatusCode::ACCEPTED {
            return Err(refused(begun).await);
        }
        let mut place = self.place(&header(begun.headers(), LOCATION.as_str()))?;
        place.query_pairs_mut().append_pair("digest", digest.as_str());
        let upload = self
            .http
            .put(place)
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_LENGTH, size)
            .body(body());
        let ended = self.send(upload, &PUSH).await?;
        if ended.status() == StatusCode::CREATED { Ok(Pushed::Sent) } else { Err(refused(ended).await) }
    }

    pub async fn push_bytes(&self, bytes: &[u8]) -> Result<Digest, RegistryFault> {
        let digest = Digest::from_sha256(Sha256::digest(bytes).into());
        self.push_blob(&digest, bytes.len() as u64, || bytes.to_vec()).await?;
        Ok(digest)
    }

    /// Under a tag or its own digest.
    pub async fn push_manifest(
        &self,
        reference: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<Digest, RegistryFault> {
        let request = self
            .request(Method::PUT, &format!("manifests/{reference}"))
            .header(CONTENT_TYPE, media_type)
            .body(bytes.to_vec());
        let answer = self.send(request, &PUSH).await?;
        if answer.status() != StatusCode::CREATED {
            return Err(refused(answer).await);
        }
        Ok(Digest::from_sha256(Sha256::digest(bytes).into()))
    }

    /// Where an upload goes on: whole or without the host, as the registry likes.
    fn place(&self, location: &str) -> Result<Url, RegistryFault> {
        let odd = || RegistryFault::Refused("it does not say where to upload".to_owned());
        let base = Url::parse(&format!("{}/", self.url)).map_err(|_| odd())?;
        base.join(location).map_err(|_| odd())
    }
}

impl From<reqwest::Error> for RegistryFault {
    fn from(error: reqwest::Error) -> RegistryFault {
        unavailable(error)
    }
}
