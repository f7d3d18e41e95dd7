//! The HTTP face of the platform: one axum server that every route joins.
//!
//! `router.rs` is the table of contents. A handler is one transaction: it reads the request, changes rows, starts or
//! operates runs through the engine, and answers. What is true of every request lives in `edge.rs`; who may come in, in
//! `gate.rs`; what a change owes besides its effect (audit, first answer), in `mutation.rs`.

mod access;
mod access_credentials;
mod action;
mod allocations;
mod app_instances;
mod artifacts;
mod asyncapi;
mod audit;
mod auth;
mod billing;
mod body;
mod caller;
mod catalog;
mod console;
mod depot;
mod edge;
mod endpoint;
mod entitlements;
mod error;
mod etag;
mod events;
mod federated_trusts;
mod gate;
mod health;
mod identity;
mod json;
mod leftovers;
mod manifest_body;
mod manifest_check;
mod manifests;
mod me;
mod members;
mod metrics;
mod mutation;
mod node_agent;
mod node_question;
mod nodes;
mod openapi;
mod organizations;
mod paging;
mod params;
mod pass;
mod path;
mod places;
mod platform_releases;
mod policies;
mod prices;
mod projects;
mod rate;
mod registry;
mod roles;
mod router;
mod schedules;
mod serve;
mod service_accounts;
mod signing_keys;
mod state;
mod strangers;
mod submissions;
mod traces;
mod uploads;
mod wait;
mod webhooks;
mod workflows;
mod wrapping;

pub use console::{Console, File};
pub use depot::Depot;
pub use error::ApiError;
pub use openapi::document;
pub use router::router;
pub use serve::{Ending, ServeError, serve, serve_probes};
pub use state::{Build, Keys, State};
