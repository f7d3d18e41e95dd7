//! One file per effect on the world, and `Env`, through which they reach it.

pub mod demo;
mod env;

pub use env::Env;
