//! What an instance of a version would be: every value as the server decides it, or every reason why it cannot be.
//!
//! Nothing here changes anything, so creating, planning and the runs themselves all ask it. Whoever needs the answer to
//! stay true holds the version for use first.

mod admission;
mod change;
pub mod credentials;
mod images;
mod new;
mod places;
mod share;
mod write;

pub use admission::{Admitted, Purpose, admit};
pub use change::{Change, To, decide_change};
pub use images::{runtime, still_usable, usable};
pub use new::{Decision, Wish, decide, within_budget};
pub use places::candidate;
pub use share::{Share, own_share};
pub use write::{Request, write};
