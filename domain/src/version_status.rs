//! The rollout of a version: its states, what may be asked for in each, and the one table of legal moves.
//!
//! Nothing else decides where a version may go; the store moves it only by compare-and-set along a row of this table.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word::UnknownWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VersionStatus {
    /// Registered; its content may still change.
    Draft,
    /// Frozen, and open to nobody yet.
    Staged,
    /// Open to the projects that the canary selects.
    Canary,
    /// Open to every entitled project.
    Active,
    /// Existing instances go on; there are no new ones.
    Deprecated,
    /// Out of use for good.
    Retired,
}

/// What somebody may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VersionAction {
    Stage,
    Canary,
    Publish,
    Rollback,
    Deprecate,
    Retire,
}

/// One legal move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub action: VersionAction,
    pub from: VersionStatus,
    pub to: VersionStatus,
}

const fn row(action: VersionAction, from: VersionStatus, to: VersionStatus) -> Move {
    Move { action, from, to }
}

/// A canary may be widened while it runs. Whoever retires an active version deprecates it first; that is one action.
pub const MOVES: &[Move] = {
    use VersionAction as Do;
    use VersionStatus::*;
    &[
        row(Do::Stage, Draft, Staged),
        row(Do::Canary, Staged, Canary),
        row(Do::Canary, Canary, Canary),
        row(Do::Publish, Canary, Active),
        row(Do::Rollback, Canary, Staged),
        row(Do::Deprecate, Active, Deprecated),
        row(Do::Retire, Active, Deprecated),
        row(Do::Retire, Draft, Retired),
        row(Do::Retire, Staged, Retired),
        row(Do::Retire, Deprecated, Retired),
    ]
};

impl VersionStatus {
    pub const ALL: [VersionStatus; 6] = [
        VersionStatus::Draft,
        VersionStatus::Staged,
        VersionStatus::Canary,
        VersionStatus::Active,
        VersionStatus::Deprecated,
        VersionStatus::Retired,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            VersionStatus::Draft => "draft",
            VersionStatus::Staged => "staged",
            VersionStatus::Canary => "canary",
            VersionStatus::Active => "active",
            VersionStatus::Deprecated => "deprecated",
            VersionStatus::Retired => "retired",
        }
    }

    /// What may be asked for now, in the order of a rollout.
    pub fn allowed_actions(self) -> Vec<VersionAction> {
        VersionAction::ALL.into_iter().filter(|action| action.leads(self).is_some()).collect()
    }

    /// Its content can no longer change.
    pub const fn is_frozen(self) -> bool {
        !matches!(self, VersionStatus::Draft)
    }
}

impl VersionAction {
    pub const ALL: [VersionAction; 6] = [
        VersionAction::Stage,
        VersionAction::Canary,
        VersionAction::Publish,
        VersionAction::Rollback,
        VersionAction::Deprecate,
        VersionAction::Retire,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            VersionAction::Stage => "stage",
            VersionAction::Canary => "canary",
            VersionAction::Publish => "publish",
            VersionAction::Rollback => "rollback",
            VersionAction::Deprecate => "deprecate",
            VersionAction::Retire => "retire",
        }
    }

    /// Where the action leads from a state; `None` where it is not legal.
    pub fn leads(self, from: VersionStatus) -> Option<VersionStatus> {
        MOVES.iter().find(|row| row.action == self && row.from == from).map(|row| row.to)
    }
}

impl FromStr for VersionStatus {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<VersionStatus, UnknownWord> {
        let known = VersionStatus::ALL.into_iter().find(|status| status.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, "a version's status"))
    }
}

impl fmt::Display for VersionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for VersionAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::VersionStatus::{Active, Canary, Deprecated, Draft, Retired, Staged};
    use super::*;

    #[test]
    fn an_action_leads_from_one_state_to_one_state() {
        for (place, row) in MOVES.iter().enumerate() {
            let rival = MOVES[place + 1..].iter().find(|o| (o.action, o.from) == (row.action, row.from));
            assert_eq!(rival, None, "{} from {} is ambiguous", row.action, row.from);
        }
    }

    #[test]
    fn the_only_ways_are_those_of_the_rollout() {
        let mut ways: Vec<_> = MOVES.iter().map(|row| (row.from, row.to)).collect();
        ways.sort_unstable();
        ways.dedup();
        assert_eq!(
            ways,
            [
                (Draft, Staged),
                (Draft, Retired),
                (Staged, Canary),
                (Staged, Retired),
                (Canary, Staged),
                (Canary, Canary),
                (Canary, Active),
                (Active, Deprecated),
                (Deprecated, Retired),
            ]
        );
    }

    #[test]
    fn the_end_is_the_end_and_a_version_that_left_draft_never_comes_back() {
        assert_eq!(Retired.allowed_actions(), []);
        assert!(MOVES.iter().all(|row| row.to != Draft));
        assert!(VersionStatus::ALL.iter().all(|status| status.is_frozen() == (*status != Draft)));
    }

    #[test]
    fn names_parse_back() {
        assert!(VersionStatus::ALL.iter().all(|status| status.as_str().parse() == Ok(*status)));
        assert!("published".parse::<VersionStatus>().is_err());
    }
}
