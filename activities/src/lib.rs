//! One file per effect on the world, and `Env`, through which they reach it.

pub mod demo;
mod env;
pub mod promises;

pub use env::Env;
