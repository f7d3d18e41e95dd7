//! Which one is meant: an id, as much of its beginning as tells it from the others, or a name.

use std::fmt::Display;

use api_types::{
    AccessCredential, AccessCredentialStatus, Allocation, AppInstance, Artifact, Me, Node, Project,
    WorkflowRun,
};
use domain::{AllocationStatus, InstanceStatus};
use uuid::Uuid;

use super::client::Client;
use crate::failure::{Failure, Kind};

/// Shorter beginnings say nothing: ids begin with the time they were made.
const SHORTEST: usize = 4;
/// Of those that may be meant, so many are told.
const TOLD: usize = 20;

pub async fn workflow(client: &Client, text: &str) -> Result<Uuid, Failure> {
    match workflow_if_any(client, text).await? {
        Some(id) => Ok(id),
        None if may_begin_an_id(text) => Err(Failure::not_found(format!("no run's id begins with {text}"))),
        None => Err(Failure::usage(format!(
            "{text} is neither the id of a run nor at least {SHORTEST} letters of one"
        ))),
    }
}

/// The same where something else may be meant: nothing if no run can be. Words that may mean several runs are a failure, so
/// that nobody looks for another meaning of them.
pub async fn workflow_if_any(client: &Client, text: &str) -> Result<Option<Uuid>, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(Some(id));
    }
    if !may_begin_an_id(text) {
        return Ok(None);
    }
    let runs: Vec<WorkflowRun> = client.list(&client.in_project("/workflows")?, &[]).await?;
    let found: Vec<Uuid> = runs.iter().filter(|run| begins(run.id, text)).map(|run| run.id).collect();
    if found.is_empty() {
        return Ok(None);
    }
    one(found, text, "run", &|id| id.to_string()).map(Some)
}

/// The states of instances that are still there, as lists are asked for them.
pub fn here() -> String {
    let here = InstanceStatus::ALL.into_iter().filter(|status| !status.is_terminal());
    here.map(InstanceStatus::as_str).collect::<Vec<&str>>().join(",")
}

/// By its id or its name. Those that are gone are meant only if no other can be, and are not even looked at before: of a
/// project that is old there are many.
pub async fn instance(client: &Client, text: &str) -> Result<AppInstance, Failure> {
    let path = client.in_project("/app-instances")?;
    if let Ok(id) = text.parse::<Uuid>() {
        return client.get(&format!("{path}/{id}"), &[]).await;
    }
    for states in [here(), InstanceStatus::Decommissioned.as_str().to_owned()] {
        let query = [("status", states), ("order", "newest".to_owned())];
        let some = client.list(&path, &query).await?;
        let found = called(some, text, |instance: &AppInstance| (instance.id, &instance.display_name));
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

/// By its slug or the beginning of its id, among those where the caller holds something; the platform's own people may
/// mean any.
pub async fn project(client: &Client, text: &str) -> Result<Uuid, Failure> {
    let me: Me = client.get("/api/v1/me", &[]).await?;
    let mine = me.grants.iter().filter_map(|grant| Some((grant.project_id?, grant.project_slug.clone()?)));
    let mut all: Vec<(Uuid, String)> = mine.collect();
    if me.grants.iter().any(|grant| grant.org_id.is_none() && grant.project_id.is_none()) {
        match client.list::<Project>("/api/v1/admin/projects", &[]).await {
            Ok(every) => all.extend(every.into_iter().map(|project| (project.id, project.slug))),
            // Not everybody who holds something on the platform may see its projects.
            Err(failure) if failure.code == Kind::Auth => {}
            Err(failure) => return Err(failure),
        }
    }
    all.sort();
    all.dedup();
    let found = called(all, text, |(id, slug)| (*id, slug));
    if found.is_empty() {
        return Err(Failure::not_found(format!(
            "no project of yours is called {text}, and no id begins with it; `gpuaas whoami` lists them"
        )));
    }
    one(found, text, "project", &|(id, slug)| format!("{id} ({slug})")).map(|(id, _)| id)
}

/// An artifact of the app, by its id, its digest, or the beginning of either.
pub async fn artifact(client: &Client, app: &str, text: &str) -> Result<Uuid, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let query = [("app_slug", app.to_owned())];
    let all: Vec<Artifact> = client.list(&client.in_project("/app-artifacts")?, &query).await?;
    let digest = text.strip_prefix("sha256:").filter(|digits| digits.len() >= SHORTEST);
    let found: Vec<Artifact> = all
        .into_iter()
        .filter(|artifact| {
            begins(artifact.id, text) || digest.is_some_and(|_| artifact.digest.starts_with(text))
        })
        .collect();
    one(found, text, "artifact", &|artifact| {
        format!("{} ({} {})", artifact.id, artifact.slot.app_version, artifact.slot.artifact_name)
    })
    .map(|artifact| artifact.id)
}

/// A credential of the project that may be used, by its name, its id or the beginning of it.
pub async fn credential(client: &Client, text: &str) -> Result<Uuid, Failure> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let all: Vec<AccessCredential> = client.list(&client.in_project("/access-credentials")?, &[]).await?;
    let usable = all.into_iter().filter(|one| one.status == AccessCredentialStatus::Active).collect();
    let found = called(usable, text, |one: &AccessCredential| (one.id, &one.name));
    if found.is_empty() {
        return Err(Failure::not_found(format!(
            "no credential of the project is called {text}, and no id begins with it"
        )));
    }
    one(found, text, "credential", &|one| format!("{} ({})", one.id, one.name)).map(|one| one.id)
}

/// A node of the platform, by its name, its id or the beginning of it.
pub async fn node(client: &Client, text: &str) -> Result<Node, Failure> {
    if let Ok(id) = text.parse::<Uuid>() {
        return client.get(&format!("/api/v1/admin/nodes/{id}"), &[]).await;
    }
    let found =
        called(client.list("/api/v1/admin/nodes", &[]).await?, text, |node: &Node| (node.id, &node.name));
    if found.is_empty() {
        return Err(Failure::not_found(format!(
            "no node is called {text}, and no id begins with it; `gpuaas nodes list` lists them"
        )));
    }
    one(found, text, "node", &|node| format!("{} ({})", node.id, node.name))
}

/// Those of this name; where there are none, those whose ids begin so.
fn called<T>(all: Vec<T>, text: &str, of: impl Fn(&T) -> (Uuid, &String)) -> Vec<T> {
    let (named, others): (Vec<T>, Vec<T>) = all.into_iter().partition(|one| of(one).1 == text);
    if named.is_empty() { others.into_iter().filter(|one| begins(of(one).0, text)).collect() } else { named }
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
            let mut all: Vec<String> = found.iter().chain([&last]).take(TOLD).map(shown).collect();
            let more = (found.len() + 1).saturating_sub(TOLD);
            if more > 0 {
                all.push(format!("and {more} more"));
            }
            Err(Failure::usage(format!(
                "{text} may be any of these, so write more of the id:\n{}",
                all.join("\n")
            )))
        }
    }
}
