//! One upload of a blob. It may take as long as it likes while it moves, and is given up when nothing moves. It goes in
//! parts, each answered before the next is sent: when a connection breaks, the registry is asked how much it has and the
//! upload goes on from there. One that has forgotten the upload, as Docker's own registry forgets what broke off within a
//! part, gets it anew.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use domain::Digest;
use futures::Stream;
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderMap, LOCATION, RANGE};
use reqwest::{Method, StatusCode, Url};

use super::fault::refused;
use super::push::PUSH;
use super::{RegistryFault, Repository, header};
use crate::moving::{self, Patience};

/// How much goes at a time. Every part asks for a token, so that none outlives its own.
pub(super) const PART: u64 = 64 << 20;

/// How often an upload may break without getting further than ever before.
const TRIES: u32 = 6;

/// Once they have it all, registries hash it, or move it to where it stays: that takes so many times longer than a pause.
const CLOSING: u32 = 15;

/// A blob that can be read from any byte on.
pub(super) struct Blob<'a, R> {
    pub(super) digest: &'a Digest,
    pub(super) size: u64,
    pub(super) read: R,
}

/// Where the registry expects the next bytes, and which.
struct Upload {
    place: Url,
    offset: u64,
}

impl Repository {
    pub(super) async fn upload<R, F, S>(&self, mut blob: Blob<'_, R>) -> Result<(), RegistryFault>
    where
        R: FnMut(Range<u64>) -> F,
        F: Future<Output = io::Result<S>>,
        S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    {
        let mut upload = self.begin().await?;
        let (mut furthest, mut tries) = (0, 0);
        loop {
            match self.send_part(&mut upload, &mut blob).await {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    if upload.offset > furthest {
                        (furthest, tries) = (upload.offset, 0);
                    }
                }
                Err(fault) => match self.go_on(fault, &mut tries, upload, blob.digest).await? {
                    Some(next) => upload = next,
                    // Only the last answer was lost.
                    None => return Ok(()),
                },
            }
        }
    }

    async fn begin(&self) -> Result<Upload, RegistryFault> {
        let begun = self.send(self.request(Method::POST, "blobs/uploads/"), &PUSH).await?;
        if begun.status() != StatusCode::ACCEPTED {
            return Err(refused(begun).await);
        }
        Ok(Upload { place: self.place(&header(begun.headers(), LOCATION.as_str()))?, offset: 0 })
    }

    /// Whether it was the last. The last part closes the upload, so small blobs go in one request.
    async fn send_part<R, F, S>(
        &self,
        upload: &mut Upload,
        blob: &mut Blob<'_, R>,
    ) -> Result<bool, RegistryFault>
    where
        R: FnMut(Range<u64>) -> F,
        F: Future<Output = io::Result<S>>,
        S: Stream<Item = io::Result<Bytes>> + Send + 'static,
    {
        let (first, end) = (upload.offset, blob.size.min(upload.offset + PART));
        if first > end {
            return Err(RegistryFault::Refused("it says that it has more than it was sent".to_owned()));
        }
        let unreadable = |error: io::Error| RegistryFault::Unreadable(error.to_string());
        let bytes = (blob.read)(first..end).await.map_err(unreadable)?;
        let is_last = end == blob.size;
        let mut request = if is_last {
            let mut place = upload.place.clone();
            place.query_pairs_mut().append_pair("digest", blob.digest.as_str());
            self.http.put(place)
        } else {
            self.http.patch(upload.place.clone())
        };
        request = request.header(CONTENT_TYPE, "application/octet-stream");
        if end > first {
            request = request.header(CONTENT_RANGE, format!("{first}-{}", end - 1));
        }
        let request = request.bearer_auth(self.token(&PUSH).await?.expose());
        let answer = moving::send(request, bytes, end - first, self.allowance(is_last)).await;
        let answer = answer.map_err(|broken| RegistryFault::Unavailable(broken.to_string()))?;
        match answer.status() {
            StatusCode::CREATED if is_last => Ok(true),
            StatusCode::ACCEPTED if !is_last => {
                upload.place = self.next_place(answer.headers(), &upload.place)?;
                upload.offset = taken(answer.headers()).unwrap_or(end);
                Ok(false)
            }
            StatusCode::NOT_FOUND | StatusCode::RANGE_NOT_SATISFIABLE => {
                Err(RegistryFault::Unavailable("it does not know of the upload any more".to_owned()))
            }
            _ => Err(refused(answer).await),
        }
    }

    fn allowance(&self, closing: bool) -> Patience {
        let for_the_answer = if closing { self.patience * CLOSING } else { self.patience };
        Patience { between_bytes: self.patience, for_the_answer }
    }

    /// What is left to do after a part that failed; nothing where the blob is there nevertheless.
    async fn go_on(
        &self,
        fault: RegistryFault,
        tries: &mut u32,
        upload: Upload,
        digest: &Digest,
    ) -> Result<Option<Upload>, RegistryFault> {
        let mut fault = fault;
        while matches!(fault, RegistryFault::Unavailable(_)) && *tries < TRIES {
            *tries += 1;
            tracing::debug!(%fault, tries, "an upload broke off");
            tokio::time::sleep(self.patience / 64 * (1 << *tries)).await;
            match self.resume(&upload, digest).await {
                Ok(next) => return Ok(next),
                Err(again) => fault = again,
            }
        }
        Err(fault)
    }

    async fn resume(&self, upload: &Upload, digest: &Digest) -> Result<Option<Upload>, RegistryFault> {
        if self.has_blob(digest).await? {
            return Ok(None);
        }
        let asked = self.send(self.http.get(upload.place.clone()), &PUSH).await?;
        match (asked.status(), taken(asked.headers())) {
            (StatusCode::NO_CONTENT, Some(offset)) => {
                Ok(Some(Upload { place: self.next_place(asked.headers(), &upload.place)?, offset }))
            }
            (status, _) if status.is_server_error() => Err(refused(asked).await),
            _ => self.begin().await.map(Some),
        }
    }

    fn next_place(&self, headers: &HeaderMap, before: &Url) -> Result<Url, RegistryFault> {
        let location = header(headers, LOCATION.as_str());
        if location.is_empty() { Ok(before.clone()) } else { self.place(&location) }
    }

    /// Where an upload goes on: whole or without the host, as the registry likes.
    fn place(&self, location: &str) -> Result<Url, RegistryFault> {
        let odd = || RegistryFault::Refused("it does not say where to upload".to_owned());
        let base = Url::parse(&format!("{}/", self.url)).map_err(|_| odd())?;
        base.join(location).map_err(|_| odd())
    }
}

/// How much the registry has: `0-LAST`. Of an upload without a byte it says `0-0` too, so that says nothing.
fn taken(headers: &HeaderMap) -> Option<u64> {
    let range = header(headers, RANGE.as_str());
    let last: u64 = range.trim_start_matches("bytes=").strip_prefix("0-")?.parse().ok()?;
    (last > 0).then_some(last + 1)
}

#[cfg(test)]
mod tests;
