//! Which one is meant: an id, as much of its beginning as tells it from the others, or a name.

use std::fmt::Display;

use api_types::{Allocation, AppInstance, WorkflowRun};
use domain::{AllocationStatus, InstanceStatus};
use uuid::Uuid;

use super::client::Client;
use crate::failure::Failure;

/// Shorter beginnings say nothing: ids begin with the time they were made.
const SHORTEST: usize = 4;

pub async fn workflow(client: &Client, text: &str) -> Result<Uuid, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    if !may_begin_an_id(text) {
        return Err(Failure::usage(format!(
            "{text} is neither the id of a run nor at least {SHORTEST} letters of one"
        )));
    }
    let runs: Vec<WorkflowRun> = client.list(&client.in_project("/workflows")?, &[]).await?;
    let found = runs.iter().filter(|run| begins(run.id, text)).map(|run| run.id).collect();
    one(found, text, "run", &|id| id.to_string())
}

/// By its id or its name. Those that are gone are meant only if no other can be.
pub async fn instance(client: &Client, text: &str) -> Result<AppInstance, Failure> {
    let path = client.in_project("/app-instances")?;
    if let Ok(id) = text.parse::<Uuid>() {
        return client.get(&format!("{path}/{id}"), &[]).await;
    }
    let (gone, here): (Vec<AppInstance>, Vec<AppInstance>) = client
        .list(&path, &[])
        .await?
        .into_iter()
        .partition(|instance: &AppInstance| instance.status == InstanceStatus::Decommissioned);
    for some in [here, gone] {
        let (named, others): (Vec<AppInstance>, Vec<AppInstance>) =
            some.into_iter().partition(|instance| instance.display_name == text);
        let found = if named.is_empty() && may_begin_an_id(text) {
            others.into_iter().filter(|instance| begins(instance.id, text)).collect()
        } else {
            named
        };
        if !found.is_empty() {
            return one(found, text, "instance", &|instance| {
                format!("{} ({} {})", instance.id, instance.app_slug, instance.status)
            });
        }
    }
    Err(Failure::not_found(format!(
        "no instance of the project is called {text}, and no id begins with it; `gpuaas ps --all` lists them"
    )))
}

pub async fn allocation(client: &Client, text: &str) -> Result<Uuid, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let all: Vec<Allocation> = client.list(&client.in_project("/allocations")?, &[]).await?;
    let found: Vec<Uuid> = all
        .into_iter()
        .filter(|allocation| allocation.status != AllocationStatus::Released)
        .map(|allocation| allocation.id)
        .filter(|id| begins(*id, text) || is_cut(*id, text))
        .collect();
    one(found, text, "allocation", &|id| id.to_string())
}

fn may_begin_an_id(text: &str) -> bool {
    text.len() >= SHORTEST && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

fn begins(id: Uuid, text: &str) -> bool {
    may_begin_an_id(text) && id.to_string().starts_with(&text.to_ascii_lowercase())
}

/// As the placement matrix writes it: the beginning and the end.
fn is_cut(id: Uuid, text: &str) -> bool {
    let id = id.to_string();
    text.split_once('…').is_some_and(|(beginning, end)| id.starts_with(beginning) && id.ends_with(end))
}

fn one<T>(
    mut found: Vec<T>,
    text: impl Display,
    kind: &str,
    shown: &dyn Fn(&T) -> String,
) -> Result<T, Failure> {
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(Failure::not_found(format!("no {kind}'s id begins with {text}"))),
        (Some(last), false) => {
            let all: Vec<String> = found.iter().chain([&last]).map(shown).collect();
            Err(Failure::usage(format!(
                "{text} may be any of these, so write more of the id:\n{}",
                all.join("\n")
            )))
        }
    }
}
