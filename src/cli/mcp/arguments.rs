//! What tools are asked with. The types are the schemas that agents see; `confirm` is added to those that change something.
//! It is long because it is one list: a tool is a few lines here, and they are read beside each other.

use std::collections::BTreeMap;

use domain::{ControlPlaneScope, OperatingMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Apps {
    /// Apps that the project may not deploy, too.
    #[serde(default)]
    pub all: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// The app's slug.
    pub app: String,
    /// The version to explain; the newest that the project may deploy, unless given.
    pub version: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instances {
    /// Only those of this app.
    pub app: Option<String>,
    /// Only those in these states, separated by commas.
    pub status: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The instance's name, its id or the beginning of it.
    pub instance: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workflows {
    /// Only runs in these states, separated by commas.
    pub status: Option<String>,
    /// Only runs of this kind, such as instance.deploy.
    pub kind: Option<String>,
    /// Only what was set off under this id.
    pub correlation_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// The run's id, or its beginning.
    pub workflow: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// The run's id, or its beginning.
    pub workflow: String,
    /// Give up after so many seconds, at most 60; it goes on.
    pub seconds: Option<u8>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// The code, as error answers have it, or the reason of an instance.
    pub code: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deploy {
    /// The app's slug.
    pub app: String,
    /// The version; the newest that the project may deploy, unless given.
    pub version: Option<String>,
    /// What people call the instance.
    pub name: Option<String>,
    /// As the version's parameters say; `get_app` tells them.
    pub config: Option<Map<String, Value>>,
    pub gpus: Option<u32>,
    pub cpus: Option<u32>,
    pub memory_gib: Option<u32>,
    /// The node's port for the app's first port.
    pub port: Option<u16>,
    /// The allocation to stand on; the first that fits, unless given.
    pub allocation: Option<String>,
    pub mode: Option<OperatingMode>,
    /// Whom its control plane serves.
    pub scope: Option<ControlPlaneScope>,
    /// One of the version's images.
    pub variant: Option<String>,
    /// An artifact of this very version to run instead of its own, by its id, its digest or the beginning of either.
    pub artifact: Option<String>,
    /// Packages beside the version's own, by PEP 508 specifiers.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Class of the version's credentials to the name or the id of the project's credential.
    #[serde(default)]
    pub credentials: BTreeMap<String, String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The instance's name, its id or the beginning of it.
    pub instance: String,
    /// The version to go to; the newest on offer for an upgrade, the last good one for a rollback, unless given.
    pub version: Option<String>,
    /// Why; kept in the audit log.
    pub reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The instance's name, its id or the beginning of it.
    pub instance: String,
    /// Why; kept in the audit log.
    pub reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Operate {
    /// The run's id, or its beginning.
    pub workflow: String,
    /// Why; kept with the act.
    pub reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Logs {
    /// The instance's name, its id or the beginning of it.
    pub instance: String,
    /// Which part of the instance, where it has several.
    pub member: Option<String>,
    /// So many lines; 100 unless given.
    pub tail: Option<u16>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Events {
    /// Only these types, separated by commas.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Only what is about the resource with this id.
    pub subject: Option<String>,
    /// Only what was set off under this id.
    pub correlation_id: Option<String>,
    /// Only events of this RFC 3339 time or later.
    pub since: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The id that answers, runs and events carry.
    pub correlation_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Only this instance, by its name, its id or the beginning of it.
    pub instance: Option<String>,
    /// How wide the sums are: hour, day or month; day unless given.
    pub window: Option<String>,
    /// What sums are told apart by: `usage_source`, `usage_unit`, `app_instance_id`, `allocation_id`, `app_slug`, separated by commas.
    pub group_by: Option<String>,
    /// Only windows that begin at this RFC 3339 time or later.
    pub from: Option<String>,
    /// Only windows that begin before this time.
    pub to: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Audit {
    /// Only this operation, such as `create_app_instance`.
    pub action: Option<String>,
    /// Only what was done to this resource, as kind:id.
    pub target: Option<String>,
    /// Only what succeeded, or only what was denied.
    pub result: Option<String>,
    /// Only what was set off under this id.
    pub correlation_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Artifacts {
    /// Only those of this app.
    pub app: Option<String>,
    /// Only those of this version.
    pub version: Option<String>,
    /// Only those on this channel.
    pub channel: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Submissions {
    /// Only those of this app.
    pub app: Option<String>,
    /// Only those with this status.
    pub status: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entitle {
    /// The app's slug.
    pub app: String,
    /// False takes it away: nothing that runs is stopped, and nothing new begins.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Why; kept in the audit log.
    pub reason: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishIntent {
    /// The app's slug.
    pub app_slug: String,
    /// The version that it is for.
    pub app_version: String,
    /// What the version's manifest calls it; runtime unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// An image unless it is said to be a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_kind: Option<Kind>,
    /// Nothing else may be registered for the intent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_digest: Option<String>,
    /// Of a file: how large it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<i64>,
    /// How long the credential is good; an hour unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<i32>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Oci,
    Blob,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Promote {
    /// The artifact's id; `list_artifacts` tells them.
    #[schemars(with = "String")]
    pub artifact: Uuid,
    pub channel: Channel,
    /// Why; kept in the audit log.
    pub reason: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Dev,
    Test,
    Staging,
    Prod,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveVersion {
    /// The app's slug.
    pub app: String,
    pub version: String,
    pub action: Move,
    /// Of a canary: out of a hundred projects.
    pub percent: Option<u8>,
    /// Of a canary: projects that are in whatever the percentage.
    #[schemars(with = "Option<Vec<String>>")]
    pub project_ids: Option<Vec<Uuid>>,
    /// Why; kept in the audit log.
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    Stage,
    Canary,
    Publish,
    Rollback,
    Deprecate,
    Retire,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// https, on the open internet unless policy says otherwise.
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Only these types; every type unless given.
    #[serde(default)]
    pub event_types: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// The webhook's id; `list_webhooks` tells them.
    #[schemars(with = "String")]
    pub webhook: Uuid,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetWebhook {
    /// The webhook's id; `list_webhooks` tells them.
    #[schemars(with = "String")]
    pub webhook: Uuid,
    /// False stops sending to it; true goes on where it stopped.
    pub active: bool,
    /// Why; kept in the audit log.
    pub reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The webhook's id; `list_webhooks` tells them.
    #[schemars(with = "String")]
    pub webhook: Uuid,
    /// These deliveries, whatever became of them.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub delivery_ids: Vec<Uuid>,
    /// Everything that was given up since this RFC 3339 time.
    pub failed_since: Option<String>,
    /// Why; kept in the audit log.
    pub reason: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewServiceAccount {
    pub name: String,
    /// Unique within the project; made from the name unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slug: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// At most what you hold yourself. Unless given: read and drive instances, publish artifacts, read workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetServiceAccount {
    /// The account's id; `list_service_accounts` tells them.
    #[schemars(with = "String")]
    pub service_account: Uuid,
    /// False lets it do nothing any more until it is enabled again.
    pub enabled: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateKey {
    /// The account's id; `list_service_accounts` tells them.
    #[schemars(with = "String")]
    pub service_account: Uuid,
    /// Revoke all older keys at once: for a key that leaked.
    #[serde(default)]
    pub revoke_others: bool,
    /// Why; kept in the audit log.
    pub reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteServiceAccount {
    /// The account's id; `list_service_accounts` tells them.
    #[schemars(with = "String")]
    pub service_account: Uuid,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetBudget {
    /// What may be spent in a calendar month, in the smallest unit of the currency; no limit unless given.
    pub amount_minor: Option<i64>,
    pub action: BudgetAction,
    /// Whether the action is taken, or only told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<BudgetMode>,
    /// Why; kept in the audit log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetAction {
    Warn,
    DenyNew,
    Stop,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetMode {
    Simulate,
    Enforce,
}

/// Either ids, or what those that are meant have in common.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRetry {
    /// These runs.
    #[schemars(with = "Option<Vec<String>>")]
    pub ids: Option<Vec<Uuid>>,
    /// Paused and stuck runs of this kind.
    pub kind: Option<String>,
    /// Those that do not advance for this reason, such as `retries_exhausted`.
    pub cause: Option<String>,
    /// Those whose error contains this text.
    pub error_signature: Option<String>,
    /// Instead of those that rest, those that failed and were not tried again; each is begun anew.
    #[serde(default)]
    pub ended: bool,
    /// At most so many, up to 200.
    pub limit: Option<u16>,
    /// Why; kept with the act.
    pub reason: Option<String>,
}

fn yes() -> bool {
    true
}
