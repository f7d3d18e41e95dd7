//! What an operator asks of a run or a schedule, and the answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::workflow::{WorkflowHandle, WorkflowRun};

/// The body of retry, pause and cancel; an empty body is the same as `{}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reason": "The registry is back." }))]
pub struct Operate {
    /// Kept with the act for whoever reads the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

/// The body of resume; an empty body is the same as `{}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reason": "The registry is back." }))]
pub struct Resume {
    /// Kept with the act for whoever reads the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
    /// Take the run from its owner, which must have been silent for half a minute. Whatever that one still writes is refused.
    #[serde(default)]
    pub force: bool,
}

/// The run as it stands after the act. Retrying a finished run answers the new run, whose `retry_of` is the old one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Operated {
    #[serde(flatten)]
    pub run: WorkflowRun,
    pub workflow: WorkflowHandle,
}
