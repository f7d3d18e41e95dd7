//! What tools are asked with. The types are the schemas that agents see.

use std::collections::BTreeMap;

use domain::{ControlPlaneScope, OperatingMode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

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
    /// The code, as error answers have it.
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
    /// An artifact of this very version to run instead of its own.
    pub artifact: Option<String>,
    /// Packages beside the version's own, by PEP 508 specifiers.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Class of the version's credentials to the id of the project's credential.
    #[serde(default)]
    pub credentials: BTreeMap<String, String>,
    /// False answers the plan and does nothing.
    #[serde(default)]
    pub confirm: bool,
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
    /// False answers the plan and does nothing.
    #[serde(default)]
    pub confirm: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The instance's name, its id or the beginning of it.
    pub instance: String,
    /// Why; kept in the audit log.
    pub reason: Option<String>,
    /// False answers the plan and does nothing.
    #[serde(default)]
    pub confirm: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Operate {
    /// The run's id, or its beginning.
    pub workflow: String,
    /// Why; kept with the act.
    pub reason: Option<String>,
    /// False answers the run as it is and does nothing.
    #[serde(default)]
    pub confirm: bool,
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
    /// False answers what the project may do with it now, and does nothing.
    #[serde(default)]
    pub confirm: bool,
}

fn yes() -> bool {
    true
}
