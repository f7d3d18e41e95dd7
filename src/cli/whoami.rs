//! `gpuaas whoami`: the caller as the platform sees it, one line for each place where they hold something.

use api_types::{Me, MyGrant};

use super::client::Client;
use super::output::{self, Format};
use crate::failure::Failure;

pub async fn run(client: &Client, format: Format) -> Result<(), Failure> {
    let me: Me = client.get("/api/v1/me", &[]).await?;
    let actor = me.actor_type.as_str();
    let row = |place: String, role: &str, keys: usize| {
        vec![me.name.clone(), actor.to_owned(), place, role.to_owned(), keys.to_string()]
    };
    let mut rows: Vec<Vec<String>> =
        me.grants.iter().map(|grant| row(place(grant), &grant.role, grant.permissions.len())).collect();
    if rows.is_empty() {
        rows.push(row("-".to_owned(), "-", 0));
    }
    if format == Format::Name {
        rows.truncate(1);
    }
    output::print(format, &["name", "actor", "place", "role", "permissions"], &rows, &me)
}

fn place(grant: &MyGrant) -> String {
    match (grant.org_id, grant.project_id) {
        (_, Some(project)) => format!("project {project}"),
        (Some(org), None) => format!("organization {org}"),
        (None, None) => "platform".to_owned(),
    }
}
