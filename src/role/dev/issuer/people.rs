//! The people of a new `gpuaas dev`, one for each part somebody can play. Their passwords are their names.

use domain::{PlatformRole, ProjectRole, Secret};

#[derive(Debug, PartialEq, Eq)]
pub struct Person {
    pub username: &'static str,
    pub role: Role,
}

/// On the platform, or in the project `example`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Platform(PlatformRole),
    Project(ProjectRole),
}

pub const PEOPLE: [Person; 5] = [
    Person { username: "admin", role: Role::Platform(PlatformRole::PlatformSuperadmin) },
    Person { username: "project-admin", role: Role::Project(ProjectRole::Admin) },
    Person { username: "operator", role: Role::Project(ProjectRole::Operator) },
    Person { username: "publisher", role: Role::Project(ProjectRole::Publisher) },
    Person { username: "viewer", role: Role::Project(ProjectRole::Viewer) },
];

impl Person {
    pub fn password(&self) -> &'static str {
        self.username
    }

    pub fn role_name(&self) -> &'static str {
        match self.role {
            Role::Platform(role) => role.as_str(),
            Role::Project(role) => role.as_str(),
        }
    }
}

pub fn sign_in(username: &str, password: &Secret<String>) -> Option<&'static Person> {
    PEOPLE.iter().find(|person| person.username == username && person.password() == password.expose())
}
