//! Artifacts: what an app runs, named by digest. Two state machines that know nothing of each other: where an artifact is
//! in its life, and how far it is trusted. The legal moves of both are written here and nowhere else.

pub mod channel_gate;
mod evidence;
mod image;
mod lifecycle;
pub mod name;
mod source;
mod trust;

pub use evidence::{CheckResult, Evidence, ProvenanceEvidence, SignatureEvidence, TrustDemands};
pub use image::{MANIFEST_TYPES, MOST_CHILDREN, check_child, check_manifest};
pub use lifecycle::{Lifecycle, LifecycleMove};
pub use source::{allows_source, builders_among, sources_among};
pub use trust::{Trust, TrustMove};

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::word::UnknownWord;

/// What the platform keeps of every image it is told of: the repository of an app, decided by the platform.
/// App slugs are unique, so no two apps share one, whatever their projects are called.
pub fn repository(project_slug: &str, app_slug: &str) -> String {
    format!("{NAMESPACE}/{project_slug}/{app_slug}")
}

/// Where a blob is, as people write it.
pub fn source_uri(project: Uuid, app_slug: &str, version: &str, name: &str) -> String {
    format!("{STORE}projects/{project}/artifacts/{app_slug}/{version}/{name}")
}

/// The place in the store that an address names.
pub fn key_of(source_uri: &str) -> &str {
    source_uri.strip_prefix(STORE).unwrap_or(source_uri)
}

pub const STORE: &str = "artifact_store://";

/// Everything the platform owns in a registry is below this.
pub const NAMESPACE: &str = "gpuaas/apps";

/// How [`repository`] is made, for people.
pub const REPOSITORY_TEMPLATE: &str = "gpuaas/apps/<project-slug>/<app-slug>";

/// Where an artifact may be promoted to. Channels are independent of each other; any may come first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    #[default]
    Dev,
    Test,
    Staging,
    Prod,
}

impl Channel {
    pub const ALL: [Channel; 4] = [Channel::Dev, Channel::Test, Channel::Staging, Channel::Prod];

    pub const fn as_str(self) -> &'static str {
        match self {
            Channel::Dev => "dev",
            Channel::Test => "test",
            Channel::Staging => "staging",
            Channel::Prod => "prod",
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Channel {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Channel, UnknownWord> {
        let named = Channel::ALL.into_iter().find(|channel| channel.as_str() == word);
        named.ok_or_else(|| UnknownWord::new(word, "a channel"))
    }
}

/// A move that the present state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an artifact that is {from} cannot {act}")]
pub struct IllegalMove {
    pub from: &'static str,
    pub act: &'static str,
    /// The acts that the present state does allow.
    pub allowed: &'static [&'static str],
}
