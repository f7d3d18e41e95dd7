//! Pushing: blobs first, then the manifest that names them. What the registry has already is not sent again, so a push
//! that broke off goes on where it was.

use std::future;
use std::io;
use std::ops::Range;

use bytes::Bytes;
use domain::Digest;
use futures::{Stream, stream};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use sha2::{Digest as _, Sha256};

use super::fault::refused;
use super::upload::Blob;
use super::{RegistryFault, Repository};
use crate::registry::scope::Action;

pub(super) const PUSH: [Action; 2] = [Action::Pull, Action::Push];

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

    /// `read` gives these bytes of the blob. It is asked only if the registry lacks the blob, and again for what did not
    /// arrive.
    pub async fn push_blob<F, S>(
        &self,
        digest: &Digest,
        size: u64,
        read: impl FnMut(Range<u64>) -> F,
    ) -> Result<Pushed, RegistryFault>
    where
        F: Future<Output = io::Result<S>>,
        S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    {
        if self.has_blob(digest).await? {
            return Ok(Pushed::There);
        }
        self.upload(Blob { digest, size, read }).await?;
        Ok(Pushed::Sent)
    }

    pub async fn push_bytes(&self, bytes: &[u8]) -> Result<Digest, RegistryFault> {
        let digest = Digest::from_sha256(Sha256::digest(bytes).into());
        let all = Bytes::copy_from_slice(bytes);
        let read = |part: Range<u64>| {
            // What is in memory is addressed by `usize`.
            let part = all.slice(part.start as usize..part.end as usize);
            future::ready(Ok(stream::iter([Ok(part)])))
        };
        self.push_blob(&digest, bytes.len() as u64, read).await?;
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
}
