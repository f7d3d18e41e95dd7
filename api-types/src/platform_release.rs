//! What the platform itself ships.

use chrono::{DateTime, Utc};
use domain::artifact::Trust;
use domain::manifest::ArtifactKind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Makes a release of artifacts that were published and verified before. A release never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "version": "1.0.0",
    "artifacts": [{ "name": "gpuaas-linux-amd64", "artifact_id": "01970000-0000-7000-8000-00000000000b" }],
}))]
pub struct NewPlatformRelease {
    #[schema(pattern = "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$")]
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 10000)]
    pub release_notes: Option<String>,
    #[schema(min_items = 1, max_items = 100)]
    pub artifacts: Vec<NewPlatformArtifact>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPlatformArtifact {
    /// What it is called in this release: the name of the file that people download.
    #[schema(pattern = "^[a-z0-9][a-z0-9._-]{0,62}$")]
    pub name: String,
    pub artifact_id: Uuid,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlatformRelease {
    pub id: Uuid,
    pub version: String,
    pub release_notes: Option<String>,
    pub artifacts: Vec<PlatformArtifact>,
    pub created_at: DateTime<Utc>,
}

/// Blobs are downloaded; images are pulled with the credential of a pull intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlatformArtifact {
    pub name: String,
    pub artifact_kind: ArtifactKind,
    pub digest: String,
    pub media_type: String,
    pub size_bytes: i64,
    pub trust_state: Trust,
    /// Of a blob: a path of this platform.
    pub download_path: Option<String>,
}
