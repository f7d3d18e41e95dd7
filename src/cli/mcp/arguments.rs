//! What tools are asked with. The types are the schemas that agents see.

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
pub struct Retry {
    /// The run's id, or its beginning.
    pub workflow: String,
    /// Why; kept with the act.
    pub reason: Option<String>,
    /// False answers the run as it is and does nothing.
    #[serde(default)]
    pub confirm: bool,
}
