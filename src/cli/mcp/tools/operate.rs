//! Tools that act on what is there: first they show it as it is, and act once they are confirmed.

use api_types::{Entitlement, SetEntitlement};
use serde_json::{Value, json};

use super::super::arguments::{End, Entitle, Operate};
use super::planned;
use crate::cli::client::Client;
use crate::cli::pick;
use crate::failure::Failure;

/// Retries, pauses, resumes or cancels a run.
pub async fn run(client: &Client, verb: &str, asked: Operate) -> Result<Value, Failure> {
    let id = pick::workflow(client, &asked.workflow).await?;
    let path = client.in_project(&format!("/workflows/{id}"))?;
    if asked.confirm {
        return client.post(&format!("{path}/{verb}"), &json!({ "reason": asked.reason })).await;
    }
    client.get(&path, &[]).await.map(planned)
}

pub async fn retry_instance(client: &Client, asked: End) -> Result<Value, Failure> {
    let instance = pick::instance(client, &asked.instance).await?;
    if !asked.confirm {
        return Ok(planned(json!(instance)));
    }
    let path = client.in_project(&format!("/app-instances/{}/retry", instance.id))?;
    client.post(&path, &json!({ "reason": asked.reason })).await
}

/// What the project gave up of the app before stays given up.
pub async fn entitle(client: &Client, asked: Entitle) -> Result<Value, Failure> {
    let path = client.in_project("/apps/entitlements")?;
    let known: Vec<Entitlement> = client.list(&path, &[]).await?;
    let before = known.into_iter().find(|entitlement| entitlement.app_slug == asked.app);
    if !asked.confirm {
        return Ok(planned(json!({ "app": asked.app, "now": before, "enabled": asked.enabled })));
    }
    let wanted = SetEntitlement {
        enabled: asked.enabled,
        policy_overrides: before.map(|before| before.policy_overrides).unwrap_or_default(),
        reason: asked.reason,
    };
    client.put(&format!("{path}/{}", asked.app), &wanted).await
}
