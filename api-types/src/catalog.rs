//! The catalog: apps, their versions and rollout, and what a version needs.

use chrono::{DateTime, Utc};
use domain::version_gate::Gate;
use domain::version_status::{VersionAction, VersionStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::workflow::WorkflowHandle;

/// An app, as the catalog shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CatalogApp {
    pub id: Uuid,
    pub slug: String,
    pub display_name: String,
    pub description: Option<String>,
    pub category: Option<String>,
    pub runtime_backend: String,
    /// The operating modes and control plane scopes its newest version supports.
    pub supported_modes: Value,
    pub ui: Option<Value>,
    /// The project that submits its versions and registers its artifacts.
    pub owner_project_id: Uuid,
    /// The newest that is not retired, whatever its status.
    pub newest_version: Option<String>,
    /// The newest that every entitled project may deploy.
    pub active_version: Option<String>,
    /// With `project_id`: the newest that this project may deploy, canaries included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_version: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A version of an app.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AppVersion {
    pub id: Uuid,
    pub app_slug: String,
    pub version: String,
    pub status: VersionStatus,
    /// Why it came to its status, in the words of whoever moved it.
    pub status_reason: Option<String>,
    /// Of a canary that halted itself: what it was judged by.
    pub evidence: Option<Value>,
    pub canary: Option<VersionCanary>,
    /// What the platform's people may ask of it now.
    pub allowed_actions: Vec<String>,
    /// In its normal form, with every default filled in.
    pub manifest: Value,
    /// SHA-256 of the normal form; the same content has the same digest.
    pub content_digest: String,
    pub registered_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Who may deploy a version before everybody may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionCanary {
    pub percent: u8,
    /// Projects that are in whatever the percentage; told to the platform's people only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_ids: Option<Vec<Uuid>>,
}

/// The version, and the run that was started on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AppVersionAccepted {
    #[serde(flatten)]
    pub version: AppVersion,
    pub workflow: WorkflowHandle,
}

/// Every action on a version with its gates, whether or not it is legal now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VersionGates {
    pub app_slug: String,
    pub version: String,
    pub status: VersionStatus,
    pub transitions: Vec<VersionTransition>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VersionTransition {
    pub action: VersionAction,
    /// Where it leads from the present status; null where it is not legal now.
    pub to: Option<VersionStatus>,
    /// Legal now, and no gate is red.
    pub open: bool,
    pub gates: Vec<Gate>,
}
