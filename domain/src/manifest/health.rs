//! How the platform sees that an app is ready and stays so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How the platform sees that the app is ready and stays so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HealthCheck)]
pub struct Health {
    /// What is asked.
    pub kind: HealthKind,
    /// What is asked for; `http` only, `/` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = r"^/[^\s#]*$"))]
    #[schemars(extend("patternErrorMessage" = "must be a path that begins with `/`, without spaces or `#`"))]
    pub path: Option<String>,
    /// One of the declared ports; the first unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// Seconds between two checks.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 3600))]
    pub interval_seconds: u32,
    /// Seconds a check may take.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 600))]
    pub timeout_seconds: u32,
    /// Seconds after the start in which a failing check means nothing yet.
    #[serde(default = "sixty")]
    #[schemars(range(min = 0, max = 86400))]
    pub grace_seconds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthKind {
    /// A request is answered with a status below 400.
    Http,
    /// A connection is accepted.
    Tcp,
    /// The app calls the platform.
    Heartbeat,
}

fn ten() -> u32 {
    10
}

fn five() -> u32 {
    5
}

fn sixty() -> u32 {
    60
}
