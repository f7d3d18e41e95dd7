//! Opening wrapped secrets, in Vault's shapes.

use std::fmt;

use domain::Secret;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(example = json!({}))]
pub struct UnwrapRequest {
    /// The wrapping token, where the one of the header is another.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub token: Option<Secret<String>>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VaultAnswer {
    pub request_id: Uuid,
    pub lease_id: String,
    pub renewable: bool,
    pub lease_duration: i64,
    #[schema(value_type = Object)]
    pub data: Value,
    #[schema(value_type = Option<Object>)]
    pub wrap_info: Value,
    #[schema(value_type = Option<Object>)]
    pub warnings: Value,
    #[schema(value_type = Option<Object>)]
    pub auth: Value,
}

impl fmt::Debug for VaultAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultAnswer").field("request_id", &self.request_id).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VaultErrors {
    pub errors: Vec<String>,
}
