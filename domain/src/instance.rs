//! The states of an app instance and the one table of moves between them. Whoever writes a state asks this table.

mod reason;

pub use reason::{ReasonKind, StatusReason};

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word::UnknownWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstanceStatus {
    Requested,
    Deploying,
    Running,
    Upgrading,
    RollingBack,
    Decommissioning,
    Decommissioned,
    Failed,
}

use InstanceStatus::{
    Decommissioned, Decommissioning, Deploying, Failed, Requested, RollingBack, Running, Upgrading,
};

impl InstanceStatus {
    pub const ALL: [InstanceStatus; 8] =
        [Requested, Deploying, Running, Upgrading, RollingBack, Decommissioning, Decommissioned, Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Requested => "requested",
            Deploying => "deploying",
            Running => "running",
            Upgrading => "upgrading",
            RollingBack => "rolling_back",
            Decommissioning => "decommissioning",
            Decommissioned => "decommissioned",
            Failed => "failed",
        }
    }

    /// Decommissioning is open from everywhere but the end, and so is failing. A failed instance resumes what failed.
    pub const fn next(self) -> &'static [InstanceStatus] {
        match self {
            Requested => &[Deploying, Decommissioning, Failed],
            Deploying | Upgrading | RollingBack => &[Running, Decommissioning, Failed],
            Running => &[Upgrading, RollingBack, Decommissioning, Failed],
            Decommissioning => &[Decommissioned, Failed],
            Failed => &[Deploying, Decommissioning],
            Decommissioned => &[],
        }
    }

    pub fn may_become(self, next: InstanceStatus) -> bool {
        self.next().contains(&next)
    }

    pub const fn is_terminal(self) -> bool {
        matches!(self, Decommissioned)
    }
}

impl fmt::Display for InstanceStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for InstanceStatus {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<InstanceStatus, UnknownWord> {
        let known = InstanceStatus::ALL.into_iter().find(|status| status.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, "an instance's status"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_but_the_last_can_be_decommissioned() {
        for status in InstanceStatus::ALL {
            let open = status.may_become(Decommissioning);
            assert_eq!(open, !matches!(status, Decommissioning | Decommissioned), "{status}");
        }
    }

    #[test]
    fn every_state_that_is_not_an_end_can_fail() {
        for status in InstanceStatus::ALL {
            let open = status.may_become(Failed);
            assert_eq!(open, !matches!(status, Failed | Decommissioned), "{status}");
        }
    }

    #[test]
    fn only_decommissioning_ends_an_instance_and_the_end_is_final() {
        let before: Vec<_> =
            InstanceStatus::ALL.into_iter().filter(|s| s.may_become(Decommissioned)).collect();
        assert_eq!(before, [Decommissioning]);
        assert!(Decommissioned.next().is_empty() && Decommissioned.is_terminal());
    }

    #[test]
    fn running_comes_of_a_lifecycle_action_only() {
        let before: Vec<_> = InstanceStatus::ALL.into_iter().filter(|s| s.may_become(Running)).collect();
        assert_eq!(before, [Deploying, Upgrading, RollingBack]);
    }

    #[test]
    fn words_parse_back() {
        for status in InstanceStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
    }
}
