//! An entry of the audit log: who did what to what, or was refused.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditResult {
    Succeeded,
    Denied,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    pub id: Uuid,
    pub at: DateTime<Utc>,
    pub org_id: Option<Uuid>,
    pub project_id: Option<Uuid>,
    pub actor: AuditActor,
    /// The operation's name in the API document.
    pub action: String,
    /// `kind:id`, or the path of a request that was refused.
    pub target: String,
    pub result: AuditResult,
    /// The error code of a denial.
    pub code: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub before: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub after: Option<Value>,
    pub reason: Option<String>,
    pub correlation_id: String,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditActor {
    /// `null` where nobody was known yet, such as a refused token request.
    pub id: Option<Uuid>,
    pub r#type: Option<String>,
    pub role: Option<String>,
}
