//! Webhooks: a project's events, sent where it wants them.
//!
//! One run per webhook, not per event: a thousand events a second are then a few runs a second, one receiver gets its
//! events in their order as long as it takes them all, and one that hangs holds up nobody else. What is not taken comes
//! again later, after others; when is written in the delivery's row. A run sends what is due and ends. However many hang,
//! they have a part of the workers and never all.

mod deliver;
mod dispatch;

pub use activities::deliver_due::results;
pub use deliver::DeliverWebhook;
pub use dispatch::{Dispatcher, dispatch};

use uuid::Uuid;

/// What a delivering run acts on; at most one does at a time.
pub fn target(webhook: Uuid) -> String {
    format!("webhook:{webhook}")
}
