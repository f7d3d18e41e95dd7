//! Identities and credentials that an instance of a version needs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RuntimeRequirements {
    /// What the controller logs in with while it sets machines up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_access_credential: Option<AccessCredentialKind>,
    /// Who drives instances of this app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_identity: Option<OperatorIdentity>,
    /// Secrets of the project that a launch names and the node agent hands over; they never go into `config`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub credential_classes: Vec<CredentialClass>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessCredentialKind {
    SshKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperatorIdentity {
    /// A service account of the project.
    ServiceAccount,
    /// The operator of a runtime that several projects share.
    SharedRuntimeOperator,
}

/// One secret that a launch names, such as the token of a model hub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CredentialClass {
    /// What launches call it in `credentials`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]{0,62}$"))]
    #[schemars(extend("patternErrorMessage" = "must be lower-case letters, digits and `_`, beginning with a letter"))]
    pub class: String,
    /// What it is for and where to get one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000))]
    pub description: Option<String>,
    /// Whether the app cannot start without it.
    #[serde(default)]
    pub required: bool,
    /// The environment variable in which the app finds it.
    #[schemars(regex(pattern = super::profile::ENV_NAME))]
    #[schemars(extend("patternErrorMessage" = "must be letters, digits and `_`, not beginning with a digit"))]
    pub env: String,
}
