//! Tools that deploy, change and end instances. Their plans are the platform's own.

use api_types::{AppInstance, InstancePlan, PlanInstance, PlannedAction};
use serde_json::{Value, json};

use super::super::arguments::{Change, Deploy, End};
use super::super::plans::{Proposal, Request};
use crate::cli::client::Client;
use crate::cli::wish::{Wish, offered};
use crate::cli::{pick, plan};
use crate::failure::Failure;

pub async fn deploy(client: &Client, asked: Deploy) -> Result<Proposal, Failure> {
    let wish = Wish {
        version: asked.version,
        name: asked.name,
        config: Vec::new(),
        gpus: asked.gpus,
        cpus: asked.cpus,
        memory: asked.memory_gib,
        port: asked.port,
        allocation: asked.allocation,
        mode: asked.mode,
        scope: asked.scope,
        variant: asked.variant,
        artifact: asked.artifact,
        packages: asked.packages,
        credentials: asked.credentials.into_iter().collect(),
    };
    let mut wanted = wish.of(client, &asked.app).await?;
    wanted.config = asked.config;
    let path = client.in_project("/app-instances")?;
    let plan: Value = client.post(&format!("{path}/plan"), &wanted).await?;
    Ok(Proposal { plan, request: Request::post(path, json!(wanted)) })
}

pub async fn version(client: &Client, action: PlannedAction, asked: Change) -> Result<Proposal, Failure> {
    let instance = pick::instance(client, &asked.instance).await?;
    let target_version = match (action, asked.version) {
        (PlannedAction::Upgrade, None) => Some(offered(client, &instance.app_slug).await?),
        (_, version) => version,
    };
    let plan = planned(client, &instance, action, target_version.clone()).await?;
    // What was shown is what is asked for, whatever the last good version is by then.
    let shown = plan.effective.as_ref().map(|effective| effective.version.clone());
    let body = json!({ "target_version": target_version.or(shown), "reason": asked.reason });
    let verb = if action == PlannedAction::Upgrade { "upgrade" } else { "rollback" };
    let path = client.in_project(&format!("/app-instances/{}/{verb}", instance.id))?;
    Ok(Proposal { plan: json!(plan), request: Request::post(path, body) })
}

pub async fn end(client: &Client, asked: End) -> Result<Proposal, Failure> {
    let instance = pick::instance(client, &asked.instance).await?;
    let plan = planned(client, &instance, PlannedAction::Decommission, None).await?;
    let path = client.in_project(&format!("/app-instances/{}/decommission", instance.id))?;
    Ok(Proposal { plan: json!(plan), request: Request::post(path, json!({ "reason": asked.reason })) })
}

async fn planned(
    client: &Client,
    instance: &AppInstance,
    action: PlannedAction,
    target_version: Option<String>,
) -> Result<InstancePlan, Failure> {
    plan::of(client, instance, &PlanInstance { action, target_version, artifact_id: None }).await
}
