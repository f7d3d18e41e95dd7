//! The permission keys: a closed list. Every route names the one it asks for; roles are sets of them.
//!
//! A new key is one variant and one row of the table: the table's length makes the compiler ask for the row.

mod set;

pub use set::PermissionSet;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// In the order of the documentation. `AuditRead` stays last: it sizes the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Permission {
    AppsCatalogRead,
    AppsManifestSubmit,
    AppsVersionManage,
    AppsEntitlementRead,
    AppsEntitlementManage,
    AppsInstanceRead,
    AppsInstanceCreate,
    AppsInstanceUpgrade,
    AppsInstanceRollback,
    AppsInstanceDelete,
    AppsInstanceOperate,
    AppsArtifactRead,
    AppsArtifactPublish,
    AppsArtifactPromote,
    AppsArtifactDeprecate,
    AppsArtifactRetire,
    AppsArtifactRevoke,
    AppsWorkerOperate,
    WorkflowsRead,
    WorkflowsOperate,
    AllocationsRead,
    AllocationsManage,
    NodesManage,
    IamMemberManage,
    IamServiceAccountRead,
    IamServiceAccountManage,
    IamCredentialRead,
    IamCredentialManage,
    BillingUsageRead,
    BillingUsageWrite,
    BillingPriceManage,
    BillingBudgetManage,
    EventsRead,
    WebhooksManage,
    AuditRead,
}

/// Where a key can be held: by members of a project, or by the platform's own people only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Project,
    Platform,
}

struct Row {
    key: Permission,
    name: &'static str,
    holder: Holder,
}

const fn row(key: Permission, name: &'static str) -> Row {
    Row { key, name, holder: Holder::Project }
}

const fn platform(key: Permission, name: &'static str) -> Row {
    Row { key, name, holder: Holder::Platform }
}

const COUNT: usize = Permission::AuditRead as usize + 1;

const TABLE: [Row; COUNT] = {
    use Permission::*;
    [
        row(AppsCatalogRead, "apps.catalog.read"),
        row(AppsManifestSubmit, "apps.manifest.submit"),
        platform(AppsVersionManage, "apps.version.manage"),
        row(AppsEntitlementRead, "apps.entitlement.read"),
        row(AppsEntitlementManage, "apps.entitlement.manage"),
        row(AppsInstanceRead, "apps.instance.read"),
        row(AppsInstanceCreate, "apps.instance.create"),
        row(AppsInstanceUpgrade, "apps.instance.upgrade"),
        row(AppsInstanceRollback, "apps.instance.rollback"),
        row(AppsInstanceDelete, "apps.instance.delete"),
        row(AppsInstanceOperate, "apps.instance.operate"),
        row(AppsArtifactRead, "apps.artifact.read"),
        row(AppsArtifactPublish, "apps.artifact.publish"),
        row(AppsArtifactPromote, "apps.artifact.promote"),
        row(AppsArtifactDeprecate, "apps.artifact.deprecate"),
        row(AppsArtifactRetire, "apps.artifact.retire"),
        row(AppsArtifactRevoke, "apps.artifact.revoke"),
        row(AppsWorkerOperate, "apps.worker.operate"),
        row(WorkflowsRead, "workflows.read"),
        row(WorkflowsOperate, "workflows.operate"),
        row(AllocationsRead, "allocations.read"),
        platform(AllocationsManage, "allocations.manage"),
        platform(NodesManage, "nodes.manage"),
        row(IamMemberManage, "iam.member.manage"),
        row(IamServiceAccountRead, "iam.service_account.read"),
        row(IamServiceAccountManage, "iam.service_account.manage"),
        row(IamCredentialRead, "iam.credential.read"),
        row(IamCredentialManage, "iam.credential.manage"),
        row(BillingUsageRead, "billing.usage.read"),
        row(BillingUsageWrite, "billing.usage.write"),
        platform(BillingPriceManage, "billing.price.manage"),
        row(BillingBudgetManage, "billing.budget.manage"),
        row(EventsRead, "events.read"),
        row(WebhooksManage, "webhooks.manage"),
        row(AuditRead, "audit.read"),
    ]
};

impl Permission {
    pub fn all() -> impl Iterator<Item = Permission> {
        TABLE.iter().map(|row| row.key)
    }

    pub const fn as_str(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// Whether a project, and so a custom role or a service account, can be given this key.
    pub fn is_of_project(self) -> bool {
        TABLE[self as usize].holder == Holder::Project
    }

    pub fn is_read(self) -> bool {
        self.as_str().ends_with(".read")
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a permission key")]
pub struct UnknownPermission(String);

impl FromStr for Permission {
    type Err = UnknownPermission;

    fn from_str(name: &str) -> Result<Permission, UnknownPermission> {
        Permission::all().find(|key| key.as_str() == name).ok_or_else(|| UnknownPermission(name.to_owned()))
    }
}

impl Serialize for Permission {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Permission {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Permission, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl PartialSchema for Permission {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("A permission key."))
            .enum_values(Some(Permission::all().map(Permission::as_str)))
            .into()
    }
}

impl ToSchema for Permission {}

/// How the API document writes a key that a project can hold: the words for what custom roles and service accounts get.
pub enum ProjectPermission {}

impl PartialSchema for ProjectPermission {
    fn schema() -> RefOr<Schema> {
        let keys = Permission::all().filter(|key| key.is_of_project()).map(Permission::as_str);
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("A permission key that a project can hold."))
            .enum_values(Some(keys))
            .into()
    }
}

impl ToSchema for ProjectPermission {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_finds_its_own_row() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(row.key as usize, place, "{} stands in another key's place", row.name);
        }
    }

    #[test]
    fn names_are_unique_and_parse_back() {
        let mut seen = std::collections::HashSet::new();
        for key in Permission::all() {
            assert!(seen.insert(key.as_str()), "{key} is listed twice");
            assert_eq!(key.as_str().parse(), Ok(key));
        }
        assert!("apps.everything".parse::<Permission>().is_err());
    }
}
