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
    /// The very app instance that the path names.
    Instance,
    /// Holders of the key, or the very app instance that the path names. Where it names none: an instance of the project, which
    /// then speaks of itself alone.
    KeyOrInstance(Permission),
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
            Access::Public | Access::SignedIn | Access::Node | Access::Instance | Access::Somewhere(_) => {
                None
            }
            Access::Key(key) | Access::KeyOrInstance(key) => Some(Demand { key, humans_only: false }),
            Access::Person(key) => Some(Demand { key, humans_only: true }),
        }
    }

    /// As the API document says it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Access::Public => "public",
            Access::SignedIn => "signed_in",
            Access::Node => "node",
            Access::Instance => "instance",
            Access::Key(key) | Access::KeyOrInstance(key) | Access::Person(key) | Access::Somewhere(key) => {
                key.as_str()
            }
        }
    }
}

impl From<Permission> for Access {
    fn from(key: Permission) -> Access {
        Access::Key(key)
    }
}
