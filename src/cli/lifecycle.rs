//! What the verbs that change instances share: the plan is shown and, on a terminal, agreed to; then the run is seen through
//! to its end, and the instance is shown as it is then.

use std::io;

use api_types::{AppInstance, AppInstanceWithRun, InstanceAccess, InstanceEndpoint, InstancePlan};
use clap::Args;
use serde::Serialize;

use super::client::Client;
use super::output::{self, Format};
use super::{plan, steps};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct Pace {
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Do not wait for the end; `gpuaas wait` does
    #[arg(long, short)]
    detach: bool,
    /// Wait for the end, which is the default
    #[arg(long, conflicts_with = "detach")]
    wait: bool,
}

/// An instance, what acted on it, and where it is reached.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    begun: AppInstanceWithRun,
    endpoints: Vec<InstanceEndpoint>,
}

/// Whether the instance takes the action now. The server decides again; this only spares people a plan for nothing.
pub fn takes(instance: &AppInstance, action: &str) -> Result<(), Failure> {
    if instance.allowed_actions.iter().any(|allowed| allowed == action) {
        return Ok(());
    }
    let allowed = instance.allowed_actions.join(", ");
    let allowed = if allowed.is_empty() { "nothing" } else { &allowed };
    let name = &instance.display_name;
    Err(Failure::conflict(format!("{name} is {}: no {action} now; allowed: {allowed}", instance.status)))
}

/// Shows what would happen. Whoever sits at a terminal is asked whether it should.
pub fn agree(
    client: &Client,
    plan: &InstancePlan,
    what: &str,
    pace: &Pace,
    format: Format,
) -> Result<(), Failure> {
    let asks = client.may_ask() && !pace.yes && !plan.changes_nothing;
    if format == Format::Table || asks {
        output::say(if asks { plan::picture(plan) } else { plan::brief(plan) }.trim_end());
    }
    if !asks {
        return Ok(());
    }
    confirm(what)
}

/// Whoever sits there says yes, or nothing is done.
pub fn confirm(what: &str) -> Result<(), Failure> {
    output::ask(&format!("{what}? [y/N] "));
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Failure::usage(format!("cannot read the answer: {error}")))?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::usage("nothing was done")),
    }
}

/// Follows what was begun to its end. `what` names it in the sentence that says it failed.
pub async fn see_through(
    client: &Client,
    begun: AppInstanceWithRun,
    what: &str,
    pace: &Pace,
    format: Format,
) -> Result<(), Failure> {
    if pace.detach {
        let run = begun.workflow.id;
        show(Shown { begun, endpoints: Vec::new() }, format)?;
        if format == Format::Table {
            output::say(&format!("it goes on without you; wait for it: gpuaas wait {run}"));
        }
        return Ok(());
    }
    let run = steps::see_through(client, begun.workflow.id, format).await?;
    let path = client.in_project(&format!("/app-instances/{}", begun.instance.id))?;
    let instance: AppInstance = client.get(&path, &[]).await?;
    let name = called(&instance);
    let mut next = vec![format!("gpuaas workflows show {}", run.run.id)];
    next.extend(instance.allowed_actions.iter().filter_map(|action| match action.as_str() {
        "retry" => Some(format!("gpuaas retry {name}")),
        "decommission" => Some(format!("gpuaas down {name}")),
        _ => None,
    }));
    steps::verdict(&run, what, next)?;
    let access: InstanceAccess = client.get(&format!("{path}/access"), &[]).await?;
    let mut workflow = begun.workflow;
    workflow.status = run.run.status;
    let hint = hint(&instance);
    show(Shown { begun: AppInstanceWithRun { instance, workflow }, endpoints: access.endpoints }, format)?;
    if format == Format::Table {
        output::say(&hint);
    }
    Ok(())
}

/// What people ask for next.
fn hint(instance: &AppInstance) -> String {
    let name = called(instance);
    if instance.status.is_terminal() {
        return format!("that nothing is left of it: gpuaas receipt {name}");
    }
    format!("see it: gpuaas open {name} · end it: gpuaas down {name}")
}

fn show(shown: Shown, format: Format) -> Result<(), Failure> {
    let instance = &shown.begun.instance;
    let urls: Vec<&str> = shown.endpoints.iter().map(|endpoint| endpoint.url.as_str()).collect();
    let row = vec![
        instance.id.to_string(),
        instance.display_name.clone(),
        instance.app_slug.clone(),
        instance.version.clone(),
        instance.status.to_string(),
        if urls.is_empty() { "-".to_owned() } else { urls.join(" ") },
    ];
    output::print(format, &["id", "name", "app", "version", "status", "url"], &[row], &shown)
}

/// The words by which the next command finds it.
pub fn called(instance: &AppInstance) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if instance.display_name.bytes().all(plain) {
        return instance.display_name.clone();
    }
    instance.id.to_string()
}
