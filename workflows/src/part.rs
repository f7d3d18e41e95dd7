//! Many things that are dealt with in parts, each in a transaction of its own: what one part left off with is where the next begins.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A second or two of work, which is as long as others wait for a row.
pub(crate) const INSTANCES_AT_ONCE: usize = 200;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) done: u32,
    /// What the next part comes after; none where this was the last.
    pub(crate) next: Option<Uuid>,
}

impl Part {
    /// As many of all as there is room for, and the last of them if there are more.
    pub(crate) fn of<T: Copy>(all: &[T], room: usize) -> (&[T], Option<T>) {
        let part = &all[..all.len().min(room)];
        let last = part.last().copied().filter(|_| all.len() > room);
        (part, last)
    }
}
