//! The stories: one integration binary, a file per story, each on a database of its own.

#![expect(clippy::disallowed_methods, reason = "stories look at tables the checked macros do not know")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a story that meets the unexpected has failed")]
#![expect(unreachable_pub, reason = "the stories share their support within one binary")]

mod architecture;
mod artifacts;
mod billing;
mod catalog;
mod cli;
mod console;
mod dev_apps;
mod dev_config;
mod dev_gpus;
mod dev_people;
mod dev_registry;
mod dev_schema;
mod dev_secrets;
mod dev_start;
mod dev_stop;
mod durable;
mod events;
mod http;
mod identity;
mod instances;
mod lifecycle;
mod manifests;
mod nodes;
mod outbox;
mod quickstart;
mod split;
mod support;
mod traces;
mod watch;
