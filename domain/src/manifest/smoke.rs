//! Requests that a fresh instance must answer before its version is rolled out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One request to a fresh instance, and what it must answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SmokeTest {
    /// What it shows, for people who read the gate.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// How it is asked.
    #[serde(default)]
    pub method: SmokeMethod,
    /// The path asked for, such as `/v1/models`.
    #[schemars(length(max = 1024), regex(pattern = r"^/[^\s#]*$"))]
    #[schemars(extend("patternErrorMessage" = "must be a path that begins with `/`, without spaces or `#`"))]
    pub path: String,
    /// The declared port that is asked; the first one unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// The JSON body that is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
    /// The status it must have.
    #[serde(default = "ok")]
    #[schemars(range(min = 100, max = 599))]
    pub expect_status: u16,
    /// Words that the answer must contain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub expect_body_contains: Option<String>,
    /// Seconds it may take.
    #[serde(default = "seconds")]
    #[schemars(range(min = 1, max = 600))]
    pub timeout_seconds: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum SmokeMethod {
    #[default]
    Get,
    Post,
}

fn ok() -> u16 {
    200
}

fn seconds() -> u32 {
    30
}
