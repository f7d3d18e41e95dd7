//! What runs by the clock and takes no input: it looks at how things are and brings them to what they should be.

pub mod clean_up;
pub mod drift;
pub mod lost_nodes;
pub mod old_events;
pub mod retention;
pub mod retirement;
pub mod signers;
pub mod stuck_runs;
