//! All SQL of the platform outside the engine's own tables: one file per table, free functions over a
//! connection, so that the caller's transaction decides what commits together.
//!
//! [`migrate`] owns the schema's version and the serving role's rights; [`roles`] and [`server`] ask the
//! database server itself. [`principals`] reads across the tables of identity: who may do what, at one moment;
//! [`trace`] across all that carry a correlation id; [`readings`] across what is measured.

pub mod access_credentials;
pub mod allocations;
pub mod app_artifacts;
pub mod app_instance_artifacts;
pub mod app_instance_heartbeats;
pub mod app_instance_releases;
pub mod app_instances;
pub mod app_versions;
pub mod apps;
pub mod audit;
pub mod billing_ledger;
pub mod budgets;
pub mod canary_samples;
pub mod console_sessions;
pub mod custom_roles;
pub mod deployment;
pub mod effective_policy;
pub mod entitlements;
pub mod event_relays;
pub mod federated_trusts;
pub mod idempotency;
pub mod listening;
pub mod memberships;
pub mod meters;
pub mod migrate;
pub mod node_tasks;
pub mod nodes;
pub mod offers;
pub mod open_windows;
pub mod organizations;
pub mod outbox;
pub mod platform_releases;
pub mod policies;
pub mod prices;
pub mod principals;
pub mod projects;
pub mod promises;
pub mod publish_intents;
pub mod pull_intents;
pub mod rated_series;
pub mod rating;
pub mod readings;
pub mod registration;
pub mod registry_credentials;
pub mod registry_pushes;
pub mod resource_leaks;
pub mod resource_ledger;
pub mod retirements;
pub mod roles;
pub mod runs;
pub mod server;
pub mod service_account_keys;
pub mod service_accounts;
pub mod signing_keys;
pub mod smoke_runs;
pub mod spent_budgets;
pub mod ssh_trusts;
pub mod stuck_runs;
pub mod submissions;
pub mod task_signers;
pub mod teardowns;
pub mod trace;
pub mod trust_demands;
pub mod unrated_projects;
pub mod usage_records;
pub mod usage_subjects;
pub mod usage_sums;
pub mod usage_windows;
pub mod used_assertions;
pub mod used_node_assertions;
pub mod users;
pub mod version_artifacts;
pub mod version_facts;
pub mod version_references;
pub mod webhook_deliveries;
pub mod webhooks;
pub mod wrapped_secrets;

mod refused;

pub use refused::Refused;

/// Where a page of a list begins, and how much it holds. Lists read one row more than they show.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// The last id of the page before.
    pub after: Option<uuid::Uuid>,
    pub limit: i64,
}

impl Slice {
    /// The end of a query over ids: by id, which is the order in which they were made, or the other way round.
    fn push_to(self, query: &mut sqlx::QueryBuilder<sqlx::Postgres>, newest_first: bool) {
        let (beyond, order) = if newest_first {
            (" and id < ", " order by id desc limit ")
        } else {
            (" and id > ", " order by id limit ")
        };
        if let Some(after) = self.after {
            query.push(beyond).push_bind(after);
        }
        query.push(order).push_bind(self.limit);
    }
}

/// A word of a closed list, as the database keeps it. One that only a newer release knows cannot be read here.
fn parsed<T: std::str::FromStr<Err = domain::UnknownWord>>(word: &str) -> sqlx::Result<T> {
    word.parse().map_err(|unknown: domain::UnknownWord| sqlx::Error::Decode(Box::new(unknown)))
}
