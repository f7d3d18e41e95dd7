//! All SQL of the platform outside the engine's own tables: one file per table, free functions over a
//! connection, so that the caller's transaction decides what commits together.
//!
//! [`migrate`] owns the schema's version and the serving role's rights; [`roles`] and [`server`] ask the
//! database server itself.

pub mod migrate;
pub mod roles;
pub mod server;
