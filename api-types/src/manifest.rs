//! What the platform says of a manifest that holds.

use domain::manifest::{Manifest, Problem};
use serde::Serialize;
use utoipa::ToSchema;

/// A manifest that would be accepted. One that would not is answered with `validation_error` and all its problems.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ValidManifest {
    /// Always true.
    pub valid: bool,
    /// The hash of the normal form: two manifests with one digest say the same.
    pub digest: String,
    /// What does not stand in the way, and may still not be meant.
    pub warnings: Vec<Problem>,
    /// The normal form: a package with every default written out.
    pub manifest: Manifest,
}
