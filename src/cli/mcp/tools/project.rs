//! Tools for what a project keeps: where its events are sent, its machines, and what it may spend. A secret is told when it is
//! made, and never again.

use reqwest::Method;
use serde_json::{Value, json};

use super::super::arguments::{
    DeleteServiceAccount, NewServiceAccount, NewWebhook, Replay, RotateKey, SetBudget, SetServiceAccount,
    SetWebhook, Webhook,
};
use super::super::plans::{Proposal, Request};
use crate::cli::client::Client;
use crate::failure::Failure;

type Proposed = Result<Proposal, Failure>;

pub async fn webhooks(client: &Client) -> Result<Value, Failure> {
    client.get(&client.in_project("/webhooks")?, &[]).await
}

pub async fn deliveries(client: &Client, asked: Webhook) -> Result<Value, Failure> {
    client.get(&client.in_project(&format!("/webhooks/{}/deliveries", asked.webhook))?, &[]).await
}

pub async fn create_webhook(client: &Client, asked: NewWebhook) -> Proposed {
    let path = client.in_project("/webhooks")?;
    Ok(Proposal { plan: json!({ "creates": asked }), request: Request::post(path, json!(asked)) })
}

pub async fn set_webhook(client: &Client, asked: SetWebhook) -> Proposed {
    let path = client.in_project(&format!("/webhooks/{}", asked.webhook))?;
    let now: Value = client.get(&path, &[]).await?;
    let status = if asked.active { "active" } else { "disabled" };
    let body = json!({ "status": status, "reason": asked.reason });
    let plan = json!({ "now": now, "status": status });
    Ok(Proposal { plan, request: Request { method: Method::PATCH, path, body } })
}

pub async fn replay(client: &Client, asked: Replay) -> Proposed {
    let path = client.in_project(&format!("/webhooks/{}", asked.webhook))?;
    let now: Value = client.get(&path, &[]).await?;
    let mut body = json!({ "delivery_ids": asked.delivery_ids, "reason": asked.reason });
    if let Some(since) = asked.failed_since {
        body["failed_since"] = json!(since);
    }
    let plan = json!({ "to": now, "sends_again": body });
    Ok(Proposal { plan, request: Request::post(format!("{path}/replay"), body) })
}

pub async fn delete_webhook(client: &Client, asked: Webhook) -> Proposed {
    let path = client.in_project(&format!("/webhooks/{}", asked.webhook))?;
    deletion(client, path).await
}

pub async fn service_accounts(client: &Client) -> Result<Value, Failure> {
    client.get(&client.in_project("/service-accounts")?, &[]).await
}

pub async fn create_account(client: &Client, asked: NewServiceAccount) -> Proposed {
    let path = client.in_project("/service-accounts")?;
    Ok(Proposal { plan: json!({ "creates": asked }), request: Request::post(path, json!(asked)) })
}

pub async fn set_account(client: &Client, asked: SetServiceAccount) -> Proposed {
    let path = client.in_project(&format!("/service-accounts/{}", asked.service_account))?;
    let now: Value = client.get(&path, &[]).await?;
    let verb = if asked.enabled { "enable" } else { "disable" };
    let plan = json!({ "now": now, "enabled": asked.enabled });
    Ok(Proposal { plan, request: Request::post(format!("{path}/{verb}"), json!({})) })
}

pub async fn rotate_key(client: &Client, asked: RotateKey) -> Proposed {
    let path = client.in_project(&format!("/service-accounts/{}", asked.service_account))?;
    let now: Value = client.get(&path, &[]).await?;
    let body = json!({ "revoke_others": asked.revoke_others, "reason": asked.reason });
    let plan = json!({ "now": now, "revoke_others": asked.revoke_others });
    Ok(Proposal { plan, request: Request::post(format!("{path}/rotate-key"), body) })
}

pub async fn delete_account(client: &Client, asked: DeleteServiceAccount) -> Proposed {
    let path = client.in_project(&format!("/service-accounts/{}", asked.service_account))?;
    deletion(client, path).await
}

async fn deletion(client: &Client, path: String) -> Proposed {
    let now: Value = client.get(&path, &[]).await?;
    let request = Request { method: Method::DELETE, path, body: json!({}) };
    Ok(Proposal { plan: json!({ "deletes": now }), request })
}

pub async fn budget(client: &Client) -> Result<Value, Failure> {
    client.get(&client.in_project("/budget")?, &[]).await
}

pub async fn set_budget(client: &Client, asked: SetBudget) -> Proposed {
    let plan = json!({ "now": budget(client).await?, "sets": asked });
    let path = client.in_project("/budget")?;
    Ok(Proposal { plan, request: Request { method: Method::PUT, path, body: json!(asked) } })
}
