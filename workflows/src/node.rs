//! What people ask of a node that takes a run: another release of its agent.

mod update;

pub use update::{UpdateAgent, UpdateNode, UpdateNodeInput};

use store::nodes::Node;
use uuid::Uuid;

use crate::action::{Subject, Visitor};

impl Subject for Node {
    const KIND: &'static str = "node";

    fn actions<V: Visitor<Node>>(visitor: &mut V) {
        visitor.action::<UpdateNode>();
    }

    fn id(&self) -> Uuid {
        self.id
    }

    /// Nodes are the platform's.
    fn owner(&self) -> (Uuid, Uuid) {
        (Uuid::nil(), Uuid::nil())
    }

    /// A word that only a newer release knows allows nothing here.
    fn state(&self) -> &'static str {
        self.status().map_or("unknown", domain::NodeStatus::as_str)
    }
}
