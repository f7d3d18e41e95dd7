//! The places a version has for artifacts. What fills them is published later and pinned by digest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::optional::Optional;

/// Variants and accelerators: `cpu`, `nvidia`, `nvidia-h200`, `amd-rocm`.
pub(super) const VARIANT: &str = "^[a-z0-9][a-z0-9._-]{0,62}$";
pub(super) const PLAIN_WORD: &str =
    "must be at most 63 lower-case letters, digits and `._-`, beginning with a letter or digit";
const NAME: &str = "^[a-z0-9][a-z0-9._-]{0,62}$";
const REPOSITORY: &str = "^[a-z0-9]+(?:[._/-][a-z0-9]+)*$";
const DIGEST: &str = "^sha256:[0-9a-f]{64}$";

/// One thing that must be published for the version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = Optional(&["source_type"]))]
pub struct ArtifactSlot {
    /// What publishers and profiles call it; `runtime` is what the node agent starts.
    #[schemars(regex(pattern = NAME), extend("patternErrorMessage" = PLAIN_WORD))]
    pub name: String,
    /// An image, unless said otherwise.
    #[serde(default)]
    pub artifact_kind: ArtifactKind,
    /// Where its bytes are: the registry for images, the artifact store for blobs.
    pub source_type: SourceType,
    /// A hint for people; the platform decides the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255), regex(pattern = REPOSITORY))]
    #[schemars(extend("patternErrorMessage" = "must be lower-case words joined by `/`, `.`, `_` or `-`, without a registry or tag"))]
    pub repository: Option<String>,
    /// The image variant it is, such as `cpu` or `nvidia-h200`; without one it fits every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = VARIANT), extend("patternErrorMessage" = PLAIN_WORD))]
    pub variant: Option<String>,
    /// The only digest that may be registered for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DIGEST))]
    #[schemars(extend("patternErrorMessage" = "must be `sha256:` and 64 lower-case hexadecimal digits"))]
    pub expected_digest: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// An image.
    #[default]
    Oci,
    /// A file: model weights, an archive.
    Blob,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceType {
    /// The platform's registry.
    OciRegistry,
    /// The platform's artifact store.
    ArtifactStore,
}

impl ArtifactSlot {
    /// The name of what the node agent starts.
    pub const RUNTIME: &'static str = "runtime";

    pub fn runtime() -> ArtifactSlot {
        ArtifactSlot {
            name: ArtifactSlot::RUNTIME.to_owned(),
            artifact_kind: ArtifactKind::Oci,
            source_type: SourceType::OciRegistry,
            repository: None,
            variant: None,
            expected_digest: None,
        }
    }

    pub(super) fn only_runtime() -> Vec<ArtifactSlot> {
        vec![ArtifactSlot::runtime()]
    }
}

impl ArtifactKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            ArtifactKind::Oci => "oci",
            ArtifactKind::Blob => "blob",
        }
    }

    /// Where the bytes of such artifacts are.
    pub const fn source_type(self) -> SourceType {
        match self {
            ArtifactKind::Oci => SourceType::OciRegistry,
            ArtifactKind::Blob => SourceType::ArtifactStore,
        }
    }
}

impl SourceType {
    pub const fn as_str(self) -> &'static str {
        match self {
            SourceType::OciRegistry => "oci_registry",
            SourceType::ArtifactStore => "artifact_store",
        }
    }
}
