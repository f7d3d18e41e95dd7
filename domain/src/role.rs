//! The built-in roles and the keys each holds. They never change; an organization that wants others makes custom
//! roles, which are sets of keys under a name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::permission::{Permission, PermissionSet};

/// What a person is on the platform itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlatformRole {
    PlatformSuperadmin,
    PlatformOps,
    /// Somebody who signed in; everything they may do comes from memberships.
    #[default]
    PlatformUser,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OrganizationRole {
    Owner,
    Admin,
    Member,
    Viewer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectRole {
    Admin,
    Operator,
    Publisher,
    Viewer,
}

impl PlatformRole {
    pub const ALL: [PlatformRole; 3] =
        [PlatformRole::PlatformSuperadmin, PlatformRole::PlatformOps, PlatformRole::PlatformUser];

    pub const fn as_str(self) -> &'static str {
        match self {
            PlatformRole::PlatformSuperadmin => "platform_superadmin",
            PlatformRole::PlatformOps => "platform_ops",
            PlatformRole::PlatformUser => "platform_user",
        }
    }

    /// Held on the platform and in every organization and project.
    pub fn keys(self) -> PermissionSet {
        match self {
            PlatformRole::PlatformSuperadmin => PermissionSet::all(),
            PlatformRole::PlatformOps => reads()
                .with(Permission::AppsVersionManage)
                .with(Permission::NodesManage)
                .with(Permission::AllocationsManage)
                .with(Permission::WorkflowsOperate),
            PlatformRole::PlatformUser => PermissionSet::EMPTY,
        }
    }
}

impl OrganizationRole {
    pub const ALL: [OrganizationRole; 4] = [
        OrganizationRole::Owner,
        OrganizationRole::Admin,
        OrganizationRole::Member,
        OrganizationRole::Viewer,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            OrganizationRole::Owner => "owner",
            OrganizationRole::Admin => "admin",
            OrganizationRole::Member => "member",
            OrganizationRole::Viewer => "viewer",
        }
    }

    pub fn keys(self) -> PermissionSet {
        match self {
            OrganizationRole::Owner | OrganizationRole::Admin => ProjectRole::Admin.keys(),
            OrganizationRole::Member => PermissionSet::EMPTY.with(Permission::AppsCatalogRead),
            OrganizationRole::Viewer => ProjectRole::Viewer.keys(),
        }
    }

    /// Whether the keys hold in every project of the organization. A plain member belongs to the organization and
    /// to no project: those stay invisible until a project takes them in.
    pub const fn reaches_projects(self) -> bool {
        !matches!(self, OrganizationRole::Member)
    }
}

impl ProjectRole {
    pub const ALL: [ProjectRole; 4] =
        [ProjectRole::Admin, ProjectRole::Operator, ProjectRole::Publisher, ProjectRole::Viewer];

    pub const fn as_str(self) -> &'static str {
        match self {
            ProjectRole::Admin => "admin",
            ProjectRole::Operator => "operator",
            ProjectRole::Publisher => "publisher",
            ProjectRole::Viewer => "viewer",
        }
    }

    pub fn keys(self) -> PermissionSet {
        use Permission::*;
        match self {
            ProjectRole::Admin => Permission::all().filter(|key| key.is_of_project()).collect(),
            ProjectRole::Operator => {
                let driving =
                    Permission::all().filter(|key| key.as_str().starts_with("apps.instance.")).collect();
                reads().and(driving).with(WorkflowsOperate)
            }
            ProjectRole::Publisher => reads()
                .with(AppsManifestSubmit)
                .with(AppsArtifactPublish)
                .with(AppsArtifactPromote)
                .with(AppsArtifactDeprecate),
            ProjectRole::Viewer => reads(),
        }
    }
}

/// What a service account may do when its creator names nothing: read and drive instances, publish artifacts, read
/// workflows.
pub fn default_service_account_keys() -> PermissionSet {
    use Permission::*;
    let driving = Permission::all().filter(|key| key.as_str().starts_with("apps.instance."));
    driving.chain([AppsCatalogRead, AppsArtifactRead, AppsArtifactPublish, WorkflowsRead]).collect()
}

/// Names a custom role cannot take: a reader must be able to tell from the name whether the role can change.
pub fn is_built_in(name: &str) -> bool {
    PlatformRole::ALL.map(PlatformRole::as_str).contains(&name)
        || OrganizationRole::ALL.map(OrganizationRole::as_str).contains(&name)
        || ProjectRole::ALL.map(ProjectRole::as_str).contains(&name)
}

fn reads() -> PermissionSet {
    Permission::all().filter(|key| key.is_read()).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a built-in role")]
pub struct UnknownRole(String);

impl FromStr for PlatformRole {
    type Err = UnknownRole;
    fn from_str(name: &str) -> Result<PlatformRole, UnknownRole> {
        named(PlatformRole::ALL, PlatformRole::as_str, name)
    }
}

impl FromStr for OrganizationRole {
    type Err = UnknownRole;
    fn from_str(name: &str) -> Result<OrganizationRole, UnknownRole> {
        named(OrganizationRole::ALL, OrganizationRole::as_str, name)
    }
}

impl FromStr for ProjectRole {
    type Err = UnknownRole;
    fn from_str(name: &str) -> Result<ProjectRole, UnknownRole> {
        named(ProjectRole::ALL, ProjectRole::as_str, name)
    }
}

fn named<R: Copy, const N: usize>(
    all: [R; N],
    name_of: fn(R) -> &'static str,
    name: &str,
) -> Result<R, UnknownRole> {
    all.into_iter().find(|role| name_of(*role) == name).ok_or_else(|| UnknownRole(name.to_owned()))
}

impl fmt::Display for PlatformRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_project_role_holds_a_key_of_the_platform() {
        for key in ["apps.version.manage", "nodes.manage", "allocations.manage", "billing.price.manage"] {
            let key: Permission = key.parse().unwrap();
            assert!(ProjectRole::ALL.iter().all(|role| !role.keys().contains(key)), "{key}");
            assert!(OrganizationRole::ALL.iter().all(|role| !role.keys().contains(key)), "{key}");
        }
    }

    #[test]
    fn a_viewer_only_reads() {
        assert!(ProjectRole::Viewer.keys().iter().all(Permission::is_read));
        assert!(Permission::all().filter(|k| k.is_read()).all(|k| ProjectRole::Viewer.keys().contains(k)));
    }

    #[test]
    fn every_role_of_a_project_is_within_its_admin() {
        for role in ProjectRole::ALL {
            assert!(role.keys().beyond(ProjectRole::Admin.keys()).is_empty(), "{role:?}");
        }
        assert!(default_service_account_keys().beyond(ProjectRole::Admin.keys()).is_empty());
    }

    #[test]
    fn operators_drive_and_publishers_publish() {
        let (operator, publisher) = (ProjectRole::Operator.keys(), ProjectRole::Publisher.keys());
        assert!(
            operator.contains(Permission::AppsInstanceDelete)
                && !operator.contains(Permission::AppsArtifactPublish)
        );
        assert!(
            publisher.contains(Permission::AppsArtifactPromote)
                && !publisher.contains(Permission::AppsArtifactRevoke)
        );
        assert!(!publisher.contains(Permission::AppsInstanceCreate));
    }

    #[test]
    fn names_parse_back() {
        assert!(ProjectRole::ALL.iter().all(|role| role.as_str().parse() == Ok(*role)));
        assert!(OrganizationRole::ALL.iter().all(|role| role.as_str().parse() == Ok(*role)));
        assert!(PlatformRole::ALL.iter().all(|role| role.as_str().parse() == Ok(*role)));
        assert!(is_built_in("operator") && is_built_in("owner") && !is_built_in("night-shift"));
    }
}
