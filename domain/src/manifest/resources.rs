//! What an instance gets: GPUs, cores and memory, each with a least, a usual and a most.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::optional::Optional;

/// What an instance gets, and within which bounds a launch may ask for more or less.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ProfileResources)]
pub struct Resources {
    /// GPUs; none unless said otherwise.
    #[serde(default = "Amount::no_gpu")]
    pub gpu_count: Amount,
    /// Cores; one unless said otherwise.
    #[serde(default = "Amount::one")]
    pub cpu_cores: Amount,
    /// Memory in GiB; one unless said otherwise.
    #[serde(default = "Amount::one")]
    pub memory_gib: Amount,
}

/// A least, a usual and a most. What is left out follows from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = Optional(&["min", "default"]))]
pub struct Amount {
    /// The least that works.
    #[schemars(range(max = 65536))]
    pub min: u32,
    /// What a launch gets that does not ask.
    #[schemars(range(max = 65536))]
    pub default: u32,
    /// The most a launch may ask for; without it the allocation is the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 65536))]
    pub max: Option<u32>,
}

impl Amount {
    pub const fn exactly(number: u32) -> Amount {
        Amount { min: number, default: number, max: None }
    }

    /// Whether a launch may ask for this much.
    pub fn allows(&self, wanted: u32) -> bool {
        self.min <= wanted && self.max.is_none_or(|max| wanted <= max)
    }

    /// The nearest that a launch may ask for.
    pub fn nearest(&self, wanted: u32) -> u32 {
        let most = self.max.unwrap_or(u32::MAX);
        wanted.clamp(self.min.min(most), most)
    }

    fn no_gpu() -> Amount {
        Amount::exactly(0)
    }

    fn one() -> Amount {
        Amount::exactly(1)
    }
}

impl Default for Resources {
    fn default() -> Resources {
        Resources { gpu_count: Amount::no_gpu(), cpu_cores: Amount::one(), memory_gib: Amount::one() }
    }
}
