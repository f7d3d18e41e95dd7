//! Tools of those who publish: artifacts on their way to a channel, versions on their way to everybody.

use serde_json::{Value, json};

use super::super::arguments::{MoveVersion, Promote, PublishIntent};
use super::super::plans::{Proposal, Request};
use crate::cli::client::{Client, escaped};
use crate::cli::workflows::word;
use crate::failure::Failure;

pub async fn publish_intent(client: &Client, asked: PublishIntent) -> Result<Proposal, Failure> {
    let (app, version) = (escaped(&asked.app_slug), escaped(&asked.app_version));
    let version: Value = client.get(&format!("/api/v1/apps/catalog/{app}/versions/{version}"), &[]).await?;
    let plan = json!({ "for": version, "asks": asked });
    let path = client.in_project("/app-artifacts/publish-intents")?;
    Ok(Proposal { plan, request: Request::post(path, json!(asked)) })
}

pub async fn promote(client: &Client, asked: Promote) -> Result<Proposal, Failure> {
    let path = client.in_project(&format!("/app-artifacts/{}", asked.artifact))?;
    let artifact: Value = client.get(&path, &[]).await?;
    let plan = json!({ "artifact": artifact, "channel": asked.channel });
    let body = json!({ "channel": asked.channel, "reason": asked.reason });
    Ok(Proposal { plan, request: Request::post(format!("{path}/promote"), body) })
}

/// The plan is the action's gates: what still stands in its way.
pub async fn move_version(client: &Client, asked: MoveVersion) -> Result<Proposal, Failure> {
    let (app, version, action) = (escaped(&asked.app), escaped(&asked.version), word(&asked.action));
    let gates: Value =
        client.get(&format!("/api/v1/apps/catalog/{app}/versions/{version}/gates"), &[]).await?;
    let mut transitions = gates["transitions"].as_array().into_iter().flatten();
    let transition = transitions.find(|one| one["action"] == json!(action));
    let plan = json!({ "version": asked.version, "status": gates["status"], "transition": transition });
    let mut body = json!({ "reason": asked.reason });
    if let Some(percent) = asked.percent {
        body["percent"] = json!(percent);
    }
    if let Some(projects) = asked.project_ids {
        body["project_ids"] = json!(projects);
    }
    let path = format!("/api/v1/admin/apps/catalog/{app}/versions/{version}/{action}");
    Ok(Proposal { plan, request: Request::post(path, body) })
}
