//! Artifacts of apps, by digest.

use chrono::{DateTime, Utc};
use domain::artifact::{Channel, Evidence, Lifecycle, Trust};
use domain::manifest::{ArtifactKind, SourceType};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::workflow::WorkflowHandle;

/// Which artifact of which version.
// The document calls it by another name, because a manifest has slots too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PublishedSlot)]
pub struct ArtifactSlot {
    pub app_slug: String,
    pub app_version: String,
    pub artifact_name: String,
    pub variant: Option<String>,
    pub artifact_kind: ArtifactKind,
    pub source_type: SourceType,
}

pub(crate) fn runtime() -> String {
    "runtime".to_owned()
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
    /// Of a blob: what `cosign sign-blob` writes, in base64 or as a bundle. An image's lies beside it in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 16384)]
    pub signature: Option<String>,
    /// Of a blob: where it was built, an in-toto statement with an SLSA predicate in a DSSE envelope, alone or in a bundle, as
    /// JSON text. An image's lies beside it in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 262144)]
    pub provenance: Option<String>,
    /// The intent under which it was published; without one, the newest of the project for this artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent_id: Option<Uuid>,
}

/// Asks for a fresh look at an artifact; an empty body is the same as `{}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reason": "It is signed by now." }))]
pub struct NewVerification {
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
    /// Of a blob: in place of the one that came with it, and kept from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 16384)]
    pub signature: Option<String>,
    /// Of a blob: where it was built, in place of what came with it, and kept from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 262144)]
    pub provenance: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    #[serde(flatten)]
    pub slot: ArtifactSlot,
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

/// The artifact, and the run that was started on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactAccepted {
    #[serde(flatten)]
    pub artifact: Artifact,
    pub workflow: WorkflowHandle,
}

/// The artifact, and the instances that still run it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactRevoked {
    #[serde(flatten)]
    pub artifact: Artifact,
    /// By instance, the first thousand.
    pub affected_instances: Vec<ArtifactReference>,
    /// How many there are, listed or not.
    pub affected_total: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactReference {
    pub app_instance_id: Uuid,
    pub project_id: Uuid,
    /// `serving`, `target` or `previous`.
    pub standing: String,
    pub status: String,
}
