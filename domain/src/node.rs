//! The states of a node and the moves between them. Nothing else decides whether a node may go from one to another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word::UnknownWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    /// Its one-time token was not used yet.
    Enrolling,
    Active,
    /// Takes no new work; what runs goes on.
    Drained,
    /// Was not heard of for too long.
    Unavailable,
}

impl NodeStatus {
    pub const ALL: [NodeStatus; 4] =
        [NodeStatus::Enrolling, NodeStatus::Active, NodeStatus::Drained, NodeStatus::Unavailable];

    pub const fn as_str(self) -> &'static str {
        match self {
            NodeStatus::Enrolling => "enrolling",
            NodeStatus::Active => "active",
            NodeStatus::Drained => "drained",
            NodeStatus::Unavailable => "unavailable",
        }
    }

    /// A node that is not heard of comes back to where it was, so `unavailable` leads to both.
    pub const fn next(self) -> &'static [NodeStatus] {
        match self {
            NodeStatus::Enrolling => &[NodeStatus::Active],
            NodeStatus::Active => &[NodeStatus::Drained, NodeStatus::Unavailable],
            NodeStatus::Drained => &[NodeStatus::Active, NodeStatus::Unavailable],
            NodeStatus::Unavailable => &[NodeStatus::Active, NodeStatus::Drained],
        }
    }

    pub fn may_become(self, next: NodeStatus) -> bool {
        self.next().contains(&next)
    }
}

impl fmt::Display for NodeStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for NodeStatus {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<NodeStatus, UnknownWord> {
        let known = NodeStatus::ALL.into_iter().find(|status| status.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, "a node's status"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_node_that_enrolled_can_do_anything() {
        assert_eq!(NodeStatus::Enrolling.next(), [NodeStatus::Active]);
        assert!(NodeStatus::ALL.into_iter().all(|status| !status.may_become(NodeStatus::Enrolling)));
    }

    #[test]
    fn a_lost_node_comes_back_to_where_it_was() {
        assert!(NodeStatus::Unavailable.may_become(NodeStatus::Active));
        assert!(NodeStatus::Unavailable.may_become(NodeStatus::Drained));
        assert!(!NodeStatus::Enrolling.may_become(NodeStatus::Unavailable));
    }

    #[test]
    fn words_parse_back() {
        for status in NodeStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert!("asleep".parse::<NodeStatus>().is_err());
    }
}
