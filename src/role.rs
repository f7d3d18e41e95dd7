//! What a process of this binary can be.

pub mod agent;
pub mod dev;
pub mod doctor;
pub mod migrate;
pub mod serve;
