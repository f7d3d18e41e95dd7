//! The image registry: what it is, the tokens it believes and what it tells. Its token and its events have the shapes that
//! Docker's protocols prescribe.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegistryInfo {
    /// What stands before a repository's name: `host:port`.
    pub registry_host: String,
    pub namespace_root: String,
    /// Who decides on repositories: always `platform`.
    pub namespace_ownership_mode: String,
    pub repository_template: String,
    /// Artifacts are named by digest; a tag is a hint.
    pub digest_only: bool,
    pub private_repositories_enabled: bool,
    pub visibility_classes: Vec<String>,
    /// Whether every artifact must be signed; a project may ask for it by itself.
    pub signature_required: bool,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegistryToken {
    pub token: String,
    /// The same; some clients look for it here.
    pub access_token: String,
    pub expires_in: i64,
    pub issued_at: DateTime<Utc>,
}

impl fmt::Debug for RegistryToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryToken").field("expires_in", &self.expires_in).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegistryErrors {
    pub errors: Vec<RegistryError>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegistryError {
    pub code: String,
    pub message: String,
}

/// What a registry sends of what happened; fields that are not read here are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "events": [{
    "id": "320678d8-ca14-430f-8bb6-4ca139cd83f7", "action": "push",
    "target": { "repository": "gpuaas/apps/example/hello", "tag": "dev-latest" },
    "actor": { "name": "01970000-0000-7000-8000-00000000000a" },
}] }))]
pub struct RegistryNotification {
    pub events: Vec<RegistryEvent>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegistryEvent {
    pub id: String,
    pub action: String,
    #[serde(default)]
    pub target: RegistryTarget,
    #[serde(default)]
    pub actor: RegistryActor,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegistryTarget {
    #[serde(default)]
    pub repository: String,
    pub digest: Option<String>,
    pub tag: Option<String>,
    #[serde(rename = "mediaType")]
    pub media_type: Option<String>,
    pub size: Option<i64>,
}

/// The `sub` of the token that was used: the id of an intent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegistryActor {
    #[serde(default)]
    pub name: String,
}
