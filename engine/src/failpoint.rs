//! Named places where a test may end the process, pretend to, or make a step fail.
//!
//! In production no hook is set and a point costs one check of an `Option`.

use std::fmt;

use crate::fault::Fault;

/// `<workflow>/<step>/<do|undo>/<place>`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point<'a> {
    pub kind: &'a str,
    pub step: &'a str,
    pub undo: bool,
    pub place: &'static str,
}

impl fmt::Display for Point<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.kind, self.step, if self.undo { "undo" } else { "do" }, self.place)
    }
}

#[derive(Debug, Clone)]
pub enum Strike {
    /// The drive ends here as if the process had died: nothing more is written.
    Crash,
    /// The effect reports this instead; honoured at `before-effect` and `after-effect`. At `before-wait` the deadline passes.
    Fail(Fault),
}

/// Asked at every point. It may also end the process for real and never return.
pub trait Faults: Send + Sync {
    fn strike(&self, point: &Point<'_>) -> Option<Strike>;
}
