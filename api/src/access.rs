//! What a route asks of its caller. A route cannot be written down without saying it.

use domain::{Demand, Permission};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// No token is looked at.
    Public,
    /// Anybody who signed in.
    SignedIn,
    /// The very node that the path names.
    Node,
    /// Holders of the key in the place that the path names.
    Key(Permission),
    /// The same, but machines are refused whatever they hold.
    Person(Permission),
    /// Holders of the key in any place at all; the path names none.
    Somewhere(Permission),
}

impl Access {
    pub(crate) fn demand(self) -> Option<Demand> {
        match self {
            Access::Public | Access::SignedIn | Access::Node | Access::Somewhere(_) => None,
            Access::Key(key) => Some(Demand { key, humans_only: false }),
            Access::Person(key) => Some(Demand { key, humans_only: true }),
        }
    }

    /// As the API document says it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Access::Public => "public",
            Access::SignedIn => "signed_in",
            Access::Node => "node",
            Access::Key(key) | Access::Person(key) | Access::Somewhere(key) => key.as_str(),
        }
    }
}

impl From<Permission> for Access {
    fn from(key: Permission) -> Access {
        Access::Key(key)
    }
}
