//! Where something happens: on the platform itself, in an organization, or in one of its projects.

use uuid::Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Platform,
    Organization { org: Uuid },
    Project { org: Uuid, project: Uuid },
}

impl Scope {
    pub const fn org(self) -> Option<Uuid> {
        match self {
            Scope::Platform => None,
            Scope::Organization { org } | Scope::Project { org, .. } => Some(org),
        }
    }

    pub const fn project(self) -> Option<Uuid> {
        match self {
            Scope::Platform | Scope::Organization { .. } => None,
            Scope::Project { project, .. } => Some(project),
        }
    }

    /// Whether `inner` lies in this scope. Every scope lies in itself, and all lie in the platform.
    pub fn encloses(self, inner: Scope) -> bool {
        match self {
            Scope::Platform => true,
            Scope::Organization { org } => inner.org() == Some(org),
            Scope::Project { .. } => self == inner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platform_encloses_organizations_which_enclose_their_own_projects() {
        let (org, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let project = Scope::Project { org, project: Uuid::from_u128(3) };
        assert!(Scope::Platform.encloses(project) && Scope::Organization { org }.encloses(project));
        assert!(!Scope::Organization { org: other }.encloses(project));
        assert!(!project.encloses(Scope::Organization { org }) && project.encloses(project));
        assert!(!Scope::Organization { org }.encloses(Scope::Platform));
    }
}
