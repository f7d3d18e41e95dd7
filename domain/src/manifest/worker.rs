//! What the app team's own controller polls for, for backends that the node agent does not run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const KEY: &str = "^[a-z][a-z0-9_-]{0,62}$";
const KEY_MEANS: &str = "must be at most 63 lower-case letters, digits, `_` and `-`, beginning with a letter";

/// What the app team's controller polls for and reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalWorkerContract {
    /// How work reaches the controller.
    #[serde(default)]
    pub delivery: Delivery,
    /// The component that an instance begins with.
    pub root: RootComponent,
    /// The components that join and leave it later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_operation: Option<ChildOperation>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The controller asks for work; the platform never calls it.
    #[default]
    Polling,
}

/// The component that an instance begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RootComponent {
    /// The controller's own word for it, such as `controller` or `head`.
    #[schemars(regex(pattern = KEY), extend("patternErrorMessage" = KEY_MEANS))]
    pub component_key: String,
    /// The field of `placement_intent` that names its allocation.
    #[schemars(regex(pattern = KEY), extend("patternErrorMessage" = KEY_MEANS))]
    pub allocation_id_key: String,
    /// What its member is called until it has its allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = KEY), extend("patternErrorMessage" = KEY_MEANS))]
    pub requested_phase: Option<String>,
    /// What its member is called once it has its allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = KEY), extend("patternErrorMessage" = KEY_MEANS))]
    pub bound_phase: Option<String>,
    /// The part its member plays.
    #[serde(default)]
    pub role: RootRole,
}

/// The components that join and leave an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildOperation {
    /// The controller's own word for them, such as `worker`.
    #[schemars(regex(pattern = KEY), extend("patternErrorMessage" = KEY_MEANS))]
    pub component_key: String,
    /// The field of `placement_intent` that names their first allocations.
    #[schemars(regex(pattern = KEY), extend("patternErrorMessage" = KEY_MEANS))]
    pub allocation_ids_key: String,
    /// What may be asked of them.
    #[serde(default = "MemberOperation::every")]
    #[schemars(length(min = 1), extend("uniqueItems" = true))]
    pub kinds: Vec<MemberOperation>,
    /// The part such a member plays.
    #[serde(default)]
    pub role: ChildRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberOperation {
    Add,
    Drain,
    Remove,
    Replace,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RootRole {
    #[default]
    Controller,
    Head,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChildRole {
    #[default]
    Worker,
    Node,
}

impl MemberOperation {
    fn every() -> Vec<MemberOperation> {
        use MemberOperation::{Add, Drain, Remove, Replace};
        vec![Add, Drain, Remove, Replace]
    }
}
