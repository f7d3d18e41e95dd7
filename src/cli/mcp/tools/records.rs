//! Tools that read what was written, told, used and done. Each answers one page: an agent that wants more narrows.

use serde_json::Value;

use super::super::arguments::{Artifacts, Audit, Events, Instance, Logs, Submissions, Trace, Usage};
use crate::cli::client::{Client, escaped};
use crate::cli::pick;
use crate::failure::Failure;

type Answer = Result<Value, Failure>;

pub async fn logs(client: &Client, asked: Logs) -> Answer {
    let instance = pick::instance(client, &asked.instance).await?;
    let tail = asked.tail.unwrap_or(100).to_string();
    let query = given([("tail", Some(tail)), ("member", asked.member)]);
    client.get(&client.in_project(&format!("/app-instances/{}/logs", instance.id))?, &query).await
}

pub async fn receipt(client: &Client, asked: Instance) -> Answer {
    let instance = pick::instance(client, &asked.instance).await?;
    client.get(&client.in_project(&format!("/app-instances/{}/receipt", instance.id))?, &[]).await
}

pub async fn events(client: &Client, asked: Events) -> Answer {
    let query = given([
        ("order", Some("newest".to_owned())),
        ("type", asked.kind),
        ("subject", asked.subject),
        ("correlation_id", asked.correlation_id),
        ("since", asked.since),
    ]);
    client.get(&client.in_project("/events")?, &query).await
}

pub async fn trace(client: &Client, asked: Trace) -> Answer {
    let query = given([("limit", Some("200".to_owned()))]);
    client.get(&format!("/api/v1/trace/{}", escaped(&asked.correlation_id)), &query).await
}

pub async fn usage(client: &Client, asked: Usage) -> Answer {
    let instance = match &asked.instance {
        Some(text) => Some(pick::instance(client, text).await?.id.to_string()),
        None => None,
    };
    let query = given([
        ("project_id", Some(client.project()?.to_owned())),
        ("app_instance_id", instance),
        ("window", Some(asked.window.unwrap_or_else(|| "day".to_owned()))),
        ("group_by", asked.group_by),
        ("from", asked.from),
        ("to", asked.to),
    ]);
    client.get("/api/v1/billing/usage", &query).await
}

pub async fn audit(client: &Client, asked: Audit) -> Answer {
    let query = given([
        ("action", asked.action),
        ("target", asked.target),
        ("result", asked.result),
        ("correlation_id", asked.correlation_id),
    ]);
    client.get(&client.in_project("/audit")?, &query).await
}

pub async fn artifacts(client: &Client, asked: Artifacts) -> Answer {
    let query = given([("app_slug", asked.app), ("app_version", asked.version), ("channel", asked.channel)]);
    client.get(&client.in_project("/app-artifacts")?, &query).await
}

pub async fn submissions(client: &Client, asked: Submissions) -> Answer {
    let query = given([("app_slug", asked.app), ("status", asked.status)]);
    client.get(&client.in_project("/apps/submissions")?, &query).await
}

fn given<const N: usize>(asked: [(&'static str, Option<String>); N]) -> Vec<(&'static str, String)> {
    asked.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect()
}
