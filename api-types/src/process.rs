//! What a process says of itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    pub name: String,
    pub version: String,
    /// The commit the binary was built from, where known.
    pub git: Option<String>,
    /// The newest migration this binary knows.
    pub schema: i64,
}
