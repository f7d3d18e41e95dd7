//! The states of an allocation and the moves between them, and the shapes capacity comes in.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word::UnknownWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AllocationStatus {
    Requested,
    Provisioning,
    /// The only state in which instances are placed on it.
    Active,
    /// Its instances are being decommissioned.
    Releasing,
    Released,
    Failed,
    ReleaseFailed,
}

impl AllocationStatus {
    pub const ALL: [AllocationStatus; 7] = [
        AllocationStatus::Requested,
        AllocationStatus::Provisioning,
        AllocationStatus::Active,
        AllocationStatus::Releasing,
        AllocationStatus::Released,
        AllocationStatus::Failed,
        AllocationStatus::ReleaseFailed,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            AllocationStatus::Requested => "requested",
            AllocationStatus::Provisioning => "provisioning",
            AllocationStatus::Active => "active",
            AllocationStatus::Releasing => "releasing",
            AllocationStatus::Released => "released",
            AllocationStatus::Failed => "failed",
            AllocationStatus::ReleaseFailed => "release_failed",
        }
    }

    /// `active` is left only through `releasing`, which is where instances are decommissioned.
    pub const fn next(self) -> &'static [AllocationStatus] {
        match self {
            AllocationStatus::Requested => &[AllocationStatus::Provisioning, AllocationStatus::Failed],
            AllocationStatus::Provisioning => &[AllocationStatus::Active, AllocationStatus::Failed],
            AllocationStatus::Active | AllocationStatus::ReleaseFailed | AllocationStatus::Failed => {
                &[AllocationStatus::Releasing]
            }
            AllocationStatus::Releasing => &[AllocationStatus::Released, AllocationStatus::ReleaseFailed],
            AllocationStatus::Released => &[],
        }
    }

    pub fn may_become(self, next: AllocationStatus) -> bool {
        self.next().contains(&next)
    }
}

impl fmt::Display for AllocationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AllocationStatus {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<AllocationStatus, UnknownWord> {
        let known = AllocationStatus::ALL.into_iter().find(|status| status.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, "an allocation's status"))
    }
}

/// What an allocation is of: a whole machine, or some of its GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapacityShape {
    /// A whole machine.
    Baremetal,
    /// Some GPUs of one machine.
    GpuSlice,
}

impl CapacityShape {
    pub const ALL: [CapacityShape; 2] = [CapacityShape::Baremetal, CapacityShape::GpuSlice];

    pub const fn as_str(self) -> &'static str {
        match self {
            CapacityShape::Baremetal => "baremetal",
            CapacityShape::GpuSlice => "gpu_slice",
        }
    }
}

impl fmt::Display for CapacityShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for CapacityShape {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<CapacityShape, UnknownWord> {
        let known = CapacityShape::ALL.into_iter().find(|shape| shape.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, "a capacity shape"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_active_allocation_is_left_only_by_releasing_it() {
        assert_eq!(AllocationStatus::Active.next(), [AllocationStatus::Releasing]);
        let ways_out = AllocationStatus::ALL.into_iter().filter(|s| s.may_become(AllocationStatus::Released));
        assert_eq!(ways_out.collect::<Vec<_>>(), [AllocationStatus::Releasing]);
    }

    #[test]
    fn released_is_the_end() {
        assert!(AllocationStatus::Released.next().is_empty());
    }

    #[test]
    fn words_parse_back() {
        for status in AllocationStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        for shape in CapacityShape::ALL {
            assert_eq!(shape.as_str().parse(), Ok(shape));
        }
    }
}
