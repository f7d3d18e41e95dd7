//! Blobs in a bucket that speaks S3's protocol. Uploads go there directly, by an address that is signed for one object and
//! one upload. Accepting copies the object to where nobody has an address for, hashes the copy, and keeps it if it is what
//! it should be. Each acceptance has a copy of its own, so none takes away what another accepted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use domain::{Digest, Secret};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt, RetryConfig};
use reqwest::Method;
use reqwest::header::{HeaderName, HeaderValue, IF_NONE_MATCH};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{BlobFault, BlobName, agree};

const CHECKSUM: &str = "x-amz-checksum-sha256";

/// For how long trouble is tried again before it is told: somebody may be waiting for an answer.
const RETRY_LIMIT: Duration = Duration::from_secs(20);

/// A request as a whole has no limit: one may copy, or give, as much as a blob has. This is how long the store may be silent.
const SILENCE_LIMIT: Duration = Duration::from_secs(900);

#[derive(Debug, Clone)]
pub struct S3Settings {
    /// `https://host` of the service; buckets are named in the path.
    pub endpoint: String,
    pub region: String,
    pub bucket: String,
    pub access_key_id: String,
    pub secret_access_key: Secret<String>,
}

#[derive(Debug, Clone)]
pub struct S3 {
    bucket: Arc<AmazonS3>,
}

/// An upload that whoever has it may make, once.
#[derive(Debug, Clone)]
pub struct SignedUpload {
    pub url: String,
    /// Headers that belong to the signature: the store refuses an upload without them.
    pub headers: BTreeMap<String, String>,
}

impl S3 {
    pub fn connect(settings: &S3Settings) -> Result<S3, BlobFault> {
        // An error says that a provider is installed already: there is only one we compile.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let bucket = AmazonS3Builder::new()
            .with_endpoint(&settings.endpoint)
            .with_client_options(options(settings))
            .with_retry(RetryConfig { max_retries: 3, retry_timeout: RETRY_LIMIT, ..RetryConfig::default() })
            .with_region(&settings.region)
            .with_bucket_name(&settings.bucket)
            .with_access_key_id(&settings.access_key_id)
            .with_secret_access_key(settings.secret_access_key.expose())
            .build()
            .map_err(trouble)?;
        Ok(S3 { bucket: Arc::new(bucket) })
    }

    /// Nothing may be there yet, and where the digest is known only those bytes are taken; the store itself sees to both.
    pub async fn sign(
        &self,
        intent: Uuid,
        digest: Option<&Digest>,
        lifetime: Duration,
    ) -> Result<SignedUpload, BlobFault> {
        let mut bound = vec![(IF_NONE_MATCH, "*".to_owned())];
        bound.extend(digest.map(|digest| (HeaderName::from_static(CHECKSUM), checksum(digest))));
        let mut options = SignedUrlOptions::new();
        for (name, value) in &bound {
            let value =
                HeaderValue::from_str(value).map_err(|error| BlobFault::Unavailable(error.to_string()))?;
            options = options.with_signed_header(name.clone(), value);
        }
        let place = incoming(intent);
        let url =
            self.bucket.signed_url_opts(Method::PUT, &place, lifetime, &options).await.map_err(trouble)?;
        let headers = bound.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        Ok(SignedUpload { url: url.to_string(), headers })
    }

    pub(super) async fn accept(&self, name: &BlobName, digest: &Digest, most: u64) -> Result<u64, BlobFault> {
        // What was taken is never written again, whatever was uploaded since.
        match self.bucket.head(&place(name)).await {
            Ok(_) => return self.check(name, digest).await,
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(trouble(error)),
        }
        match self.take(name, digest, most).await {
            // Somebody else took it meanwhile, and cleared away after themselves; or nothing was ever there.
            Err(BlobFault::Absent) => self.check(name, digest).await,
            taken => taken,
        }
    }

    async fn take(&self, name: &BlobName, digest: &Digest, most: u64) -> Result<u64, BlobFault> {
        let (from, to) = (incoming(name.intent), place(name));
        if self.bucket.head(&from).await.map_err(trouble)?.size > most {
            self.remove(&from).await?;
            return Err(BlobFault::TooLarge { most });
        }
        let copy = accepting(name.intent).join(Uuid::new_v4().to_string());
        self.bucket.copy(&from, &copy).await.map_err(trouble)?;
        let kept = self.keep(&copy, &to, digest).await;
        self.remove(&copy).await?;
        if kept.is_ok() {
            self.remove(&from).await?;
            // What is left of others that were cut short is of no use now; whoever retires the blob looks again.
            let _ = self.sweep(name.intent).await;
        }
        kept
    }

    /// Copies of acceptances that were cut short.
    async fn sweep(&self, intent: Uuid) -> Result<(), BlobFault> {
        let folder = accepting(intent);
        let left: Vec<Path> = self
            .bucket
            .list(Some(&folder))
            .map_ok(|found| found.location)
            .try_collect()
            .await
            .map_err(trouble)?;
        for copy in left {
            self.remove(&copy).await?;
        }
        Ok(())
    }

    async fn keep(&self, copy: &Path, to: &Path, digest: &Digest) -> Result<u64, BlobFault> {
        let (found, size) = self.hashed(copy).await?;
        agree(digest, found)?;
        self.bucket.copy(copy, to).await.map_err(trouble)?;
        Ok(size)
    }

    pub(super) async fn check(&self, name: &BlobName, digest: &Digest) -> Result<u64, BlobFault> {
        let (found, size) = self.hashed(&place(name)).await?;
        agree(digest, found)?;
        Ok(size)
    }

    /// Gone already is well.
    async fn remove(&self, object: &Path) -> Result<(), BlobFault> {
        match self.bucket.delete(object).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(trouble(error)),
        }
    }

    async fn hashed(&self, object: &Path) -> Result<(Digest, u64), BlobFault> {
        let mut chunks = self.bucket.get(object).await.map_err(trouble)?.into_stream();
        let (mut hash, mut size) = (Sha256::new(), 0);
        while let Some(chunk) = chunks.try_next().await.map_err(trouble)? {
            hash.update(&chunk);
            size += chunk.len() as u64;
        }
        Ok((Digest::from_sha256(hash.finalize().into()), size))
    }

    pub(super) async fn read(
        &self,
        name: &BlobName,
    ) -> Result<BoxStream<'static, Result<Bytes, BlobFault>>, BlobFault> {
        let object = self.bucket.get(&place(name)).await.map_err(trouble)?;
        Ok(object.into_stream().map_err(trouble).boxed())
    }

    pub(super) async fn delete(&self, name: &BlobName) -> Result<(), BlobFault> {
        self.remove(&place(name)).await?;
        self.sweep(name.intent).await?;
        self.remove(&incoming(name.intent)).await
    }
}

fn options(settings: &S3Settings) -> ClientOptions {
    ClientOptions::new()
        .with_allow_http(settings.endpoint.starts_with("http://"))
        .with_connect_timeout(Duration::from_secs(5))
        .with_timeout_disabled()
        .with_read_timeout(SILENCE_LIMIT)
}

fn incoming(intent: Uuid) -> Path {
    Path::from(format!("incoming/{intent}"))
}

/// Named by the intent, so that whoever clears away after it finds all of them.
fn accepting(intent: Uuid) -> Path {
    Path::from(format!("accepting/{intent}"))
}

fn place(name: &BlobName) -> Path {
    Path::from(format!("{}/{}", name.key, name.intent))
}

/// As S3 writes checksums.
fn checksum(digest: &Digest) -> String {
    BASE64_STANDARD.encode(digest.to_sha256())
}

/// The store's own words may hold addresses with signatures, so only the kind of trouble is told.
fn trouble(error: object_store::Error) -> BlobFault {
    use object_store::Error::{NotFound, PermissionDenied, Precondition, Unauthenticated};
    match error {
        NotFound { .. } => BlobFault::Absent,
        PermissionDenied { .. } | Unauthenticated { .. } => {
            BlobFault::Unavailable("it does not accept the platform's credentials".to_owned())
        }
        Precondition { .. } => BlobFault::Busy,
        error if is_full(&error) => BlobFault::NoRoom,
        _ => BlobFault::Unavailable("the request failed".to_owned()),
    }
}

/// By the status that HTTP has for it, or in the words of the servers that have others.
fn is_full(error: &object_store::Error) -> bool {
    let said = error.to_string().to_ascii_lowercase();
    [
        "507 insufficient storage",
        "storagefull",
        "quotaexceeded",
        "no space left",
        "no free volumes",
        "no writable volumes",
    ]
    .iter()
    .any(|sign| said.contains(sign))
}
