//! Instances: from what was asked for to what runs on a node, and back to nothing, with proof.

mod decommission;
mod deploy;
mod struck;
