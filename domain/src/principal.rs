//! Who asks: one type for people and machines. A principal is what the platform's own tables grant it, nothing that
//! a token says of itself.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::permission::{Permission, PermissionSet};
use crate::scope::Scope;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorType {
    User,
    ServiceAccount,
    SharedRuntimeOperator,
    Node,
}

impl ActorType {
    pub const fn as_str(self) -> &'static str {
        match self {
            ActorType::User => "user",
            ActorType::ServiceAccount => "service_account",
            ActorType::SharedRuntimeOperator => "shared_runtime_operator",
            ActorType::Node => "node",
        }
    }

    pub const fn is_human(self) -> bool {
        matches!(self, ActorType::User)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub id: Uuid,
    pub actor_type: ActorType,
    pub grants: Vec<Grant>,
}

/// Keys held in one place, by virtue of one role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub scope: Scope,
    /// The role's name, for the audit log and for `/me`.
    pub role: String,
    pub keys: PermissionSet,
    /// Whether the keys also hold in everything inside the scope.
    pub reaches_inside: bool,
}

/// Everywhere a principal holds one key, for what lies in no place that a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The platform and all that is on it.
    pub everything: bool,
    /// Organizations with all their projects.
    pub orgs: Vec<Uuid>,
    pub projects: Vec<Uuid>,
}

impl Reach {
    pub fn is_empty(&self) -> bool {
        !self.everything && self.orgs.is_empty() && self.projects.is_empty()
    }
}

/// Why a principal may not do something. The order of the variants is the order in which they are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The place is not the caller's: to them it does not exist.
    Invisible,
    /// A route of the platform, asked for by somebody who holds nothing there.
    AdminRequired,
    InsufficientPermissions,
}

impl Principal {
    /// Everything this principal may do in a place.
    pub fn keys_in(&self, scope: Scope) -> PermissionSet {
        self.grants_in(scope).fold(PermissionSet::EMPTY, |keys, grant| keys.and(grant.keys))
    }

    pub fn holds(&self, key: Permission, scope: Scope) -> bool {
        self.keys_in(scope).contains(key)
    }

    /// Whether any place at all gives the key.
    pub fn holds_somewhere(&self, key: Permission) -> bool {
        self.grants.iter().any(|grant| grant.keys.contains(key))
    }

    /// Everywhere the key is held. A grant that does not reach inside its place reaches nothing here.
    pub fn reach(&self, key: Permission) -> Reach {
        let mut reach = Reach::default();
        for grant in self.grants.iter().filter(|grant| grant.reaches_inside && grant.keys.contains(key)) {
            match grant.scope {
                Scope::Platform => reach.everything = true,
                Scope::Organization { org } => reach.orgs.push(org),
                Scope::Project { project, .. } => reach.projects.push(project),
            }
        }
        reach
    }

    /// The role under which the principal acts in a place, as the audit log tells it: the one given there, or else
    /// one that reaches there.
    pub fn role_in(&self, scope: Scope) -> Option<&str> {
        let given_there = self.grants.iter().find(|grant| grant.scope == scope);
        given_there.or_else(|| self.grants_in(scope).next()).map(|grant| grant.role.as_str())
    }

    fn grants_in(&self, scope: Scope) -> impl Iterator<Item = &Grant> {
        self.grants.iter().filter(move |grant| {
            grant.scope == scope || (grant.reaches_inside && grant.scope.encloses(scope))
        })
    }
}

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    pub key: Permission,
    /// Machines are refused whatever they hold.
    pub humans_only: bool,
}

/// The one decision: may `principal` do what needs `demand` in `scope`?
pub fn authorize(principal: &Principal, demand: Demand, scope: Scope) -> Result<(), Refusal> {
    let held = principal.keys_in(scope);
    if held.is_empty() {
        return Err(match scope {
            Scope::Platform => Refusal::AdminRequired,
            Scope::Organization { .. } | Scope::Project { .. } => Refusal::Invisible,
        });
    }
    let machine_among_humans = demand.humans_only && !principal.actor_type.is_human();
    if !held.contains(demand.key) || machine_among_humans {
        return Err(Refusal::InsufficientPermissions);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::{OrganizationRole, PlatformRole, ProjectRole};

    const ORG: Uuid = Uuid::from_u128(1);
    const HERE: Scope = Scope::Project { org: ORG, project: Uuid::from_u128(2) };
    const NEXT_DOOR: Scope = Scope::Project { org: ORG, project: Uuid::from_u128(3) };
    const FAR_AWAY: Scope = Scope::Project { org: Uuid::from_u128(9), project: Uuid::from_u128(4) };

    fn somebody(grants: Vec<Grant>) -> Principal {
        Principal { id: Uuid::from_u128(7), actor_type: ActorType::User, grants }
    }

    fn in_project(role: ProjectRole) -> Principal {
        let (role, keys) = (role.as_str().to_owned(), role.keys());
        somebody(vec![Grant { scope: HERE, role, keys, reaches_inside: true }])
    }

    fn in_organization(role: OrganizationRole) -> Principal {
        let scope = Scope::Organization { org: ORG };
        let reaches_inside = role.reaches_projects();
        somebody(vec![Grant { scope, role: role.as_str().to_owned(), keys: role.keys(), reaches_inside }])
    }

    fn on_platform(role: PlatformRole) -> Principal {
        let (name, keys) = (role.as_str().to_owned(), role.keys());
        somebody(vec![Grant { scope: Scope::Platform, role: name, keys, reaches_inside: true }])
    }

    fn asks(key: Permission) -> Demand {
        Demand { key, humans_only: false }
    }

    #[test]
    fn a_project_one_has_no_part_in_does_not_exist_even_for_its_neighbours_admin() {
        let admin = in_project(ProjectRole::Admin);
        assert_eq!(authorize(&admin, asks(Permission::AuditRead), HERE), Ok(()));
        for elsewhere in [NEXT_DOOR, FAR_AWAY, Scope::Organization { org: ORG }] {
            assert_eq!(authorize(&admin, asks(Permission::AuditRead), elsewhere), Err(Refusal::Invisible));
        }
    }

    #[test]
    fn routes_of_the_platform_are_for_those_who_hold_something_there() {
        let key = asks(Permission::WorkflowsRead);
        assert_eq!(
            authorize(&in_project(ProjectRole::Admin), key, Scope::Platform),
            Err(Refusal::AdminRequired)
        );
        assert_eq!(
            authorize(&on_platform(PlatformRole::PlatformUser), key, Scope::Platform),
            Err(Refusal::AdminRequired)
        );
        let ops = on_platform(PlatformRole::PlatformOps);
        assert_eq!(authorize(&ops, key, Scope::Platform), Ok(()));
        assert_eq!(
            authorize(&ops, asks(Permission::IamMemberManage), Scope::Platform),
            Err(Refusal::InsufficientPermissions)
        );
    }

    #[test]
    fn an_organizations_people_act_in_its_projects_and_nowhere_else() {
        let owner = in_organization(OrganizationRole::Owner);
        assert_eq!(authorize(&owner, asks(Permission::IamMemberManage), HERE), Ok(()));
        assert_eq!(authorize(&owner, asks(Permission::IamMemberManage), FAR_AWAY), Err(Refusal::Invisible));
        let member = in_organization(OrganizationRole::Member);
        let catalog = asks(Permission::AppsCatalogRead);
        assert_eq!(authorize(&member, catalog, Scope::Organization { org: ORG }), Ok(()));
        assert_eq!(authorize(&member, catalog, HERE), Err(Refusal::Invisible));
    }

    #[test]
    fn a_key_reaches_as_far_as_its_grant() {
        let key = Permission::EventsRead;
        let reach = Reach { projects: vec![Uuid::from_u128(2)], ..Reach::default() };
        assert_eq!(in_project(ProjectRole::Viewer).reach(key), reach);
        assert!(in_project(ProjectRole::Viewer).reach(Permission::WebhooksManage).is_empty());
        let reach = Reach { orgs: vec![ORG], ..Reach::default() };
        assert_eq!(in_organization(OrganizationRole::Viewer).reach(key), reach);
        assert!(in_organization(OrganizationRole::Member).reach(Permission::AppsCatalogRead).is_empty());
        assert!(on_platform(PlatformRole::PlatformOps).reach(key).everything);
    }

    #[test]
    fn a_missing_key_is_told_apart_from_a_missing_project() {
        let viewer = in_project(ProjectRole::Viewer);
        let refused = authorize(&viewer, asks(Permission::WorkflowsOperate), HERE);
        assert_eq!(refused, Err(Refusal::InsufficientPermissions));
    }

    #[test]
    fn a_machine_is_refused_among_humans_whatever_it_holds() {
        let machine = Principal { actor_type: ActorType::ServiceAccount, ..in_project(ProjectRole::Admin) };
        let demand = Demand { key: Permission::AppsEntitlementManage, humans_only: true };
        assert_eq!(authorize(&machine, demand, HERE), Err(Refusal::InsufficientPermissions));
        assert_eq!(authorize(&machine, Demand { humans_only: false, ..demand }, HERE), Ok(()));
    }

    #[test]
    fn the_superadmin_may_do_everything_everywhere() {
        let superadmin = on_platform(PlatformRole::PlatformSuperadmin);
        for key in Permission::all() {
            for scope in [Scope::Platform, Scope::Organization { org: ORG }, HERE, FAR_AWAY] {
                assert_eq!(authorize(&superadmin, asks(key), scope), Ok(()), "{key}");
            }
        }
    }
}
