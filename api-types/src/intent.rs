//! Permissions to publish and to pull artifacts, and how their credentials are handed over.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use domain::Digest;
use domain::artifact::Channel;
use domain::manifest::{ArtifactKind, SourceType};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::artifact::{ArtifactSlot, runtime};

/// Asks for the permission to publish one artifact of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "app_slug": "hello", "app_version": "1.0.0", "artifact_name": "runtime", "channel": "dev" }))]
pub struct NewPublishIntent {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub app_slug: String,
    #[schema(pattern = "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$")]
    pub app_version: String,
    /// What the version's manifest calls it; `runtime` unless given.
    #[serde(default = "runtime")]
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub artifact_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub variant: Option<String>,
    #[serde(default)]
    pub artifact_kind: ArtifactKind,
    /// Follows the kind unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_type: Option<SourceType>,
    /// Only names the tag: `dev-latest` for `dev`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Nothing else may be registered for the intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    pub expected_digest: Option<String>,
    /// The key of the project that must sign it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_key_id: Option<Uuid>,
    /// Of a blob: how large it may be; 5 GiB unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 5497558138880i64)]
    pub max_bytes: Option<i64>,
    /// How long the credential is good; an hour unless given. It must outlive the push and the signing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 60, maximum = 86400)]
    pub ttl_seconds: Option<i32>,
}

/// How a credential is fetched: `token` opens it once, at `unwrap_path`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WrappedCredential {
    /// Always `wrapped`.
    pub mode: String,
    /// Told once: `null` when the same request is answered again.
    pub token: Option<String>,
    /// A path of this platform, or an address of its secret store. Unwrapped it gives `username`, `password` and `registry`.
    pub unwrap_path: String,
}

impl fmt::Debug for WrappedCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WrappedCredential").field("unwrap_path", &self.unwrap_path).finish_non_exhaustive()
    }
}

/// The permission to publish. Images have a repository and a credential, blobs an address to upload to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishIntent {
    pub id: Uuid,
    #[serde(flatten)]
    pub slot: ArtifactSlot,
    /// `host:port`, where the image is pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// A hint: what counts is the digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<WrappedCredential>,
    /// Of a blob, told once: where it is uploaded; a path of this platform, or an address of its store. At a path, `HEAD`
    /// tells how much is there and `PUT` with `Content-Range` goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_method: Option<String>,
    /// Headers that every upload must carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_headers: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<i64>,
    pub signature_required: bool,
    /// `cosign-ecdsa-p256`.
    pub signature_scheme: String,
    pub signing_key_id: Option<Uuid>,
    pub provenance_required: bool,
    pub expected_digest: Option<String>,
    pub expires_at: DateTime<Utc>,
    pub secret_already_delivered: bool,
}

impl fmt::Debug for PublishIntent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublishIntent").field("id", &self.id).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "artifact_id": "01970000-0000-7000-8000-00000000000b" }))]
pub struct NewPullIntent {
    pub artifact_id: Uuid,
    /// How long the credential is good; a quarter of an hour unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 60, maximum = 3600)]
    pub ttl_seconds: Option<i32>,
}

/// Asks for the permission to pull an image of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "ttl_seconds": 900 }))]
pub struct NewPlatformPullIntent {
    /// How long the credential is good; a quarter of an hour unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 60, maximum = 3600)]
    pub ttl_seconds: Option<i32>,
}

/// The permission to pull one image by its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PullIntent {
    pub id: Uuid,
    pub artifact_id: Uuid,
    pub registry: String,
    pub repository: String,
    pub digest: String,
    pub credential: WrappedCredential,
    pub expires_at: DateTime<Utc>,
    pub secret_already_delivered: bool,
}

/// How far an upload is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadProgress {
    /// How much is there: the next byte to send.
    pub upload_offset: u64,
    /// Of the whole, once it is there.
    #[schema(value_type = Option<String>)]
    pub digest: Option<Digest>,
}
