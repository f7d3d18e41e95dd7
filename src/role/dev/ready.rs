//! What a started `gpuaas dev` consists of: told to a person as text, and to scripts as a JSON file that appears
//! whole or not at all.

use std::env;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use sqlx::postgres::PgConnectOptions;
use uuid::{Uuid, uuid};

use super::cluster::Cluster;
use super::data::DataDir;
use super::issuer::{PEOPLE, Person};
use crate::failure::Failure;
use crate::role::migrate::describe;

/// Organization `demo` and project `example` are the same on every machine, so that examples can name them.
pub const ORG_ID: Uuid = uuid!("01970000-0000-7000-8000-000000000001");
pub const PROJECT_ID: Uuid = uuid!("01970000-0000-7000-8000-000000000002");

#[derive(Debug, Serialize)]
pub struct Ready {
    api_url: String,
    /// `host:port`; absent where none is installed.
    registry: Option<String>,
    org_id: Uuid,
    project_id: Uuid,
    /// The whole of this machine, for the example project.
    allocation_id: Option<Uuid>,
    /// What runs the containers: `docker`, or `simulated` where none is ever started.
    driver: Option<&'static str>,
    users: Vec<User>,
    /// What became of the app that is there to be tried.
    #[serde(skip)]
    hello: String,
    #[serde(skip)]
    database: String,
    #[serde(skip)]
    data: PathBuf,
    #[serde(skip)]
    kept_in: Option<(PathBuf, PathBuf, bool)>,
}

/// Somebody who may sign in.
#[derive(Debug, Serialize)]
struct User {
    username: &'static str,
    password: &'static str,
    roles: [&'static str; 1],
}

impl From<&Person> for User {
    fn from(person: &Person) -> User {
        User { username: person.username, password: person.password(), roles: [person.role_name()] }
    }
}

impl Ready {
    pub fn new(
        api: SocketAddr,
        registry: Option<String>,
        database: &PgConnectOptions,
        data: &DataDir,
        cluster: Option<&Cluster>,
    ) -> Ready {
        Ready {
            api_url: format!("http://{api}"),
            registry,
            org_id: ORG_ID,
            project_id: PROJECT_ID,
            allocation_id: None,
            driver: None,
            users: PEOPLE.iter().map(User::from).collect(),
            hello: String::new(),
            database: describe(database),
            data: data.path.clone(),
            kept_in: cluster.map(|cluster| (data.passwords_path(), cluster.log.clone(), cluster.adopted)),
        }
    }

    pub fn api_url(&self) -> &str {
        &self.api_url
    }

    pub fn with_node(&mut self, driver: &'static str, allocation_id: Uuid) {
        (self.driver, self.allocation_id) = (Some(driver), Some(allocation_id));
    }

    pub fn with_hello(&mut self, told: String) {
        self.hello = told;
    }

    pub fn banner(&self, took: Duration) -> String {
        let Ready { api_url, registry, project_id, database, users, .. } = self;
        let mut text = format!("gpuaas is ready after {:.1} s\n\n", took.as_secs_f32());
        let mut line = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {name:<10}{value}");
        };
        line("API", &format!("{api_url}/api/v1"));
        match registry {
            Some(host) => line("registry", host),
            None => line(
                "registry",
                "none: docker-registry is not installed (Debian: apt-get install docker-registry)",
            ),
        }
        line("project", &format!("{project_id} (example, of organization demo)"));
        for (at, user) in users.iter().enumerate() {
            let name = if at == 0 { "users" } else { "" };
            line(name, &format!("{} (password {}): {}", user.username, user.password, user.roles.join(", ")));
        }
        if let (Some(driver), Some(allocation)) = (self.driver, self.allocation_id) {
            let note = if driver == "simulated" {
                ": no container engine answered when it enrolled, so nothing really runs"
            } else {
                ""
            };
            line("node", &format!("this machine, driver {driver}{note}"));
            line("", &format!("allocation {allocation}"));
        }
        line("app", &self.hello);
        line("database", database);
        if let Some((passwords, log, adopted)) = &self.kept_in {
            line("", &format!("passwords in {}", near(passwords)));
            line("", &format!("log in {}", near(log)));
            if *adopted {
                line("", "it was still running from an earlier start");
            }
        }
        line("data", &near(&self.data));
        let token = format!("{api_url}/realms/gpuaas/protocol/openid-connect/token");
        line("try", &format!("token=$(curl -s {token} -d client_id=gpuaas -d grant_type=password \\"));
        line(
            "",
            "  -d username=operator -d password=operator | sed 's/.*\"access_token\":\"\\([^\"]*\\).*/\\1/')",
        );
        let workflows = format!("{api_url}/api/v1/projects/{project_id}/workflows");
        line("", &format!("curl -H \"Authorization: Bearer $token\" {workflows}"));
        text.push_str("\nCtrl-C stops everything; the next start continues on the same data.\n");
        text
    }

    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(self).map_err(Failure::server)?;
        let unfinished = path.with_extension("unfinished");
        fs::write(&unfinished, json + "\n")
            .and_then(|()| fs::rename(&unfinished, path))
            .map_err(|error| Failure::usage(format!("cannot write --ready-file {}: {error}", path.display())))
    }
}

/// As a person in this folder would write it.
fn near(path: &Path) -> String {
    let here = env::current_dir().and_then(fs::canonicalize);
    match here.as_deref().map(|here| path.strip_prefix(here)) {
        Ok(Ok(below)) => format!("./{}", below.display()),
        _ => path.display().to_string(),
    }
}

pub fn forget(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure::usage(format!("cannot replace --ready-file {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_this_folder_is_named_from_here() {
        let here = fs::canonicalize(".").unwrap();
        assert_eq!(near(&here.join(".gpuaas/postgres.log")), "./.gpuaas/postgres.log");
        assert_eq!(near(Path::new("/var/lib/gpuaas-dev")), "/var/lib/gpuaas-dev");
    }
}
