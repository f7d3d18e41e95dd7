//! The first half of a manifest: what is true of an app whatever its version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::version::Version;
use crate::runtime::{ControlPlaneScope, OperatingMode, RuntimeBackend};
use crate::slug;

/// An app and one version of it: what an app team submits, a platform admin reviews and the catalog shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "app": { "slug": "notes", "display_name": "Notes", "runtime_backend": "launchable_oci" },
    "version": {
        "version": "1.0.0",
        "runtime_profile": { "kind": "launchable_oci", "ports": [{ "container": 8080 }] },
    },
}))]
pub struct Manifest {
    pub app: App,
    pub version: Version,
}

/// What is true of the app whatever its version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ManifestApp)]
pub struct App {
    /// The app's short name in paths, repositories and commands.
    #[schemars(regex(pattern = slug::PATTERN))]
    #[schemars(extend("patternErrorMessage" = "must be 2 to 63 lower-case letters, digits and `-`, beginning with a letter or digit"))]
    pub slug: String,
    /// The app's name for people.
    #[schemars(length(min = 1, max = 100))]
    pub display_name: String,
    /// One or two sentences for the catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000))]
    pub description: Option<String>,
    /// The shelf it stands on in the catalog, such as `notebooks` or `inference`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50))]
    pub category: Option<String>,
    /// What runs the app. In the flat form it follows from `runtime_profile.kind`.
    pub runtime_backend: RuntimeBackend,
    /// The modes and scopes an instance may have.
    #[serde(default)]
    pub supported_modes: SupportedModes,
    /// How people reach the app's own pages, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ui: Option<Ui>,
}

/// Operating modes and control plane scopes. `tenant_dedicated` goes with `project` or `tenant`, `platform_managed`
/// with `platform`; every entry needs a partner in the other list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SupportedModes {
    /// Whether a tenant has an instance to itself.
    #[serde(default = "tenant_dedicated")]
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub operating_modes: Vec<OperatingMode>,
    /// Whom one control plane serves.
    #[serde(default = "project")]
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub control_plane_scopes: Vec<ControlPlaneScope>,
}

/// How people reach the app's own pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ManifestUi)]
pub struct Ui {
    /// Where the pages appear.
    pub extension_kind: UiExtensionKind,
    /// Where the pages begin, such as `/lab`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/[^\s?#]{0,255}$"))]
    #[schemars(extend("patternErrorMessage" = "must be a path that begins with `/`, without spaces, `?` or `#`"))]
    pub path: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum UiExtensionKind {
    /// The console's own forms and pages are enough.
    Metadata,
    /// The app's pages appear inside the console, through the platform's gateway.
    Embedded,
    /// The console links to the app's pages.
    LinkOut,
}

impl SupportedModes {
    /// Every pair of mode and scope an instance may have, in the order of the lists.
    pub fn pairs(&self) -> impl Iterator<Item = (OperatingMode, ControlPlaneScope)> + '_ {
        self.operating_modes.iter().flat_map(move |mode| {
            let scopes = self.control_plane_scopes.iter().filter(|scope| mode.supports(**scope));
            scopes.map(|scope| (*mode, *scope))
        })
    }
}

impl Default for SupportedModes {
    fn default() -> SupportedModes {
        SupportedModes { operating_modes: tenant_dedicated(), control_plane_scopes: project() }
    }
}

fn tenant_dedicated() -> Vec<OperatingMode> {
    vec![OperatingMode::TenantDedicated]
}

fn project() -> Vec<ControlPlaneScope> {
    vec![ControlPlaneScope::Project]
}
