//! Artifacts of apps, the permissions to publish and pull them, and the keys that vouch for them.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use domain::artifact::{Channel, Evidence, Lifecycle, Trust};
use domain::manifest::{ArtifactKind, SourceType};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

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
    /// Of a blob: how large it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_bytes: Option<i64>,
    /// How long the credential is good; an hour unless given. It must outlive the push and the signing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 60, maximum = 86400)]
    pub ttl_seconds: Option<i32>,
}

fn runtime() -> String {
    "runtime".to_owned()
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
    pub app_slug: String,
    pub app_version: String,
    pub artifact_name: String,
    pub variant: Option<String>,
    pub artifact_kind: ArtifactKind,
    pub source_type: SourceType,
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
    /// Of a blob, told once: where it is uploaded. `HEAD` tells how much is there, `PUT` with `Content-Range` continues.
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

/// Makes an artifact known by its digest. A tag alone names nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "app_slug": "hello", "app_version": "1.0.0", "artifact_name": "runtime", "repository": "gpuaas/apps/example/hello",
    "digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "tag": "dev-latest",
    "media_type": "application/vnd.oci.image.manifest.v1+json",
}))]
pub struct NewArtifact {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub app_slug: String,
    #[schema(pattern = "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$")]
    pub app_version: String,
    #[serde(default = "runtime")]
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub artifact_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub variant: Option<String>,
    #[serde(default)]
    pub artifact_kind: ArtifactKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_type: Option<SourceType>,
    /// Of an image; must be the one that an intent of the project named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub repository: Option<String>,
    /// Of a blob; as the intent named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub source_uri: Option<String>,
    #[schema(pattern = "^sha256:[0-9a-f]{64}$")]
    pub digest: String,
    /// Where given it must point at the digest at this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$")]
    pub tag: Option<String>,
    /// Where given it must be what the registry says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub media_type: Option<String>,
    /// Where given it must be the manifest's, or the blob's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0)]
    pub size_bytes: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: String,
    pub app_version: String,
    pub artifact_name: String,
    pub variant: Option<String>,
    pub artifact_kind: ArtifactKind,
    pub source_type: SourceType,
    pub repository: Option<String>,
    pub source_uri: Option<String>,
    pub tag: Option<String>,
    pub digest: String,
    pub digest_algorithm: String,
    pub media_type: String,
    pub size_bytes: i64,
    pub visibility: String,
    pub lifecycle_state: Lifecycle,
    pub trust_state: Trust,
    pub channels: Vec<Channel>,
    /// What the last verification found; without any check it was never verified.
    pub evidence: Evidence,
    pub allowed_actions: Vec<String>,
    pub correlation_id: String,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// The artifact, and the instances that still run it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactRevoked {
    #[serde(flatten)]
    pub artifact: Artifact,
    pub affected_instances: Vec<ArtifactReference>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactReference {
    pub app_instance_id: Uuid,
    pub project_id: Uuid,
    /// `serving`, `target` or `previous`.
    pub standing: String,
    pub status: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "release",
    "public_key_pem": "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n",
}))]
pub struct NewSigningKey {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{1,62}$")]
    pub name: String,
    /// P-256 in PEM form, as `cosign generate-key-pair` writes it to `cosign.pub`.
    #[schema(min_length = 1, max_length = 2000)]
    pub public_key_pem: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SigningKey {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub name: String,
    /// `ecdsa_p256_sha256`.
    pub algorithm: String,
    pub public_key_pem: String,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    /// From then on it vouches for nothing new.
    pub retired_at: Option<DateTime<Utc>>,
}
