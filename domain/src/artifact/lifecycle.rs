//! Where an artifact is in its life: `published → promoted → deprecated → retired`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::IllegalMove;
use crate::word::UnknownWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    Published,
    /// To at least one channel.
    Promoted,
    /// What runs goes on; nothing new begins.
    Deprecated,
    Retired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleMove {
    Promote,
    Deprecate,
    Retire,
}

impl Lifecycle {
    pub const ALL: [Lifecycle; 4] =
        [Lifecycle::Published, Lifecycle::Promoted, Lifecycle::Deprecated, Lifecycle::Retired];

    pub const fn as_str(self) -> &'static str {
        match self {
            Lifecycle::Published => "published",
            Lifecycle::Promoted => "promoted",
            Lifecycle::Deprecated => "deprecated",
            Lifecycle::Retired => "retired",
        }
    }

    /// The table of legal moves. Promoting again is for another channel; deprecating again changes nothing.
    pub fn after(self, act: LifecycleMove) -> Result<Lifecycle, IllegalMove> {
        use Lifecycle::{Deprecated, Promoted, Published, Retired};
        use LifecycleMove::{Deprecate, Promote, Retire};
        match (self, act) {
            (Published | Promoted, Promote) => Ok(Promoted),
            (Published | Promoted | Deprecated, Deprecate) => Ok(Deprecated),
            (Deprecated, Retire) => Ok(Retired),
            (from, act) => {
                Err(IllegalMove { from: from.as_str(), act: act.as_str(), allowed: from.allowed() })
            }
        }
    }

    /// What may be asked of an artifact in this state. Retiring begins with deprecating, so it may be asked earlier.
    pub const fn allowed(self) -> &'static [&'static str] {
        match self {
            Lifecycle::Published | Lifecycle::Promoted => &["promote", "deprecate", "retire"],
            Lifecycle::Deprecated => &["retire"],
            Lifecycle::Retired => &[],
        }
    }

    /// Whether something new may begin to use it.
    pub const fn is_deployable(self) -> bool {
        matches!(self, Lifecycle::Published | Lifecycle::Promoted)
    }
}

impl LifecycleMove {
    pub const fn as_str(self) -> &'static str {
        match self {
            LifecycleMove::Promote => "promote",
            LifecycleMove::Deprecate => "deprecate",
            LifecycleMove::Retire => "retire",
        }
    }
}

impl FromStr for Lifecycle {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Lifecycle, UnknownWord> {
        let named = Lifecycle::ALL.into_iter().find(|state| state.as_str() == word);
        named.ok_or_else(|| UnknownWord::new(word, "the lifecycle state of an artifact"))
    }
}

#[cfg(test)]
mod tests {
    use super::Lifecycle::*;
    use super::LifecycleMove::*;
    use super::*;

    #[test]
    fn every_pair_of_state_and_move_is_decided() {
        let table = [
            (Published, Promote, Some(Promoted)),
            (Published, Deprecate, Some(Deprecated)),
            (Published, Retire, None),
            (Promoted, Promote, Some(Promoted)),
            (Promoted, Deprecate, Some(Deprecated)),
            (Promoted, Retire, None),
            (Deprecated, Promote, None),
            (Deprecated, Deprecate, Some(Deprecated)),
            (Deprecated, Retire, Some(Retired)),
            (Retired, Promote, None),
            (Retired, Deprecate, None),
            (Retired, Retire, None),
        ];
        assert_eq!(table.len(), Lifecycle::ALL.len() * 3);
        for (from, act, to) in table {
            assert_eq!(from.after(act).ok(), to, "{from:?} {act:?}");
        }
    }

    #[test]
    fn only_what_is_published_or_promoted_may_be_used_anew() {
        let deployable: Vec<Lifecycle> =
            Lifecycle::ALL.into_iter().filter(|state| state.is_deployable()).collect();
        assert_eq!(deployable, [Published, Promoted]);
    }
}
