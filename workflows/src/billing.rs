//! What is counted and charged by the clock, and what is charged anew.

pub mod accrue;
mod post;
pub mod prove;
pub mod rerate;
pub mod rollup;
