//! The HTTP face of the platform: one axum server that every route joins.
//!
//! `router.rs` is the table of contents. A handler is one transaction: it reads the request, changes rows, starts or
//! operates runs through the engine, and answers. What is true of every request lives in `edge.rs`.

mod body;
mod edge;
mod endpoint;
mod error;
mod etag;
mod health;
mod metrics;
mod openapi;
mod params;
mod router;
mod schedules;
mod scope;
mod serve;
mod state;
mod trace;
mod wait;
mod workflows;

pub use error::ApiError;
pub use openapi::document;
pub use router::router;
pub use serve::{ServeError, serve};
pub use state::{Build, State};
