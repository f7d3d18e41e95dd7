//! The caller as the platform sees it.

use domain::{ActorType, Permission};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    pub id: Uuid,
    pub actor_type: ActorType,
    /// A person's name at their issuer, or a service account's.
    pub name: String,
    /// A person's role on the platform itself.
    pub platform_role: Option<String>,
    pub grants: Vec<MyGrant>,
}

/// Keys held in one place: the platform (both ids `null`), an organization, or a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MyGrant {
    pub org_id: Option<Uuid>,
    pub project_id: Option<Uuid>,
    /// The project's short name.
    pub project_slug: Option<String>,
    pub role: String,
    pub permissions: Vec<Permission>,
}
