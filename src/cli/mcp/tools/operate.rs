//! Tools that act on what is there: what they show first is how it stands.

use api_types::{Entitlement, SetEntitlement};
use reqwest::Method;
use serde_json::{Value, json};

use super::super::arguments::{BulkRetry, End, Entitle, Operate};
use super::super::plans::{Proposal, Request};
use crate::cli::client::{Client, escaped};
use crate::cli::pick;
use crate::failure::Failure;

/// Retries, pauses, resumes or cancels a run.
pub async fn run(client: &Client, verb: &str, asked: Operate) -> Result<Proposal, Failure> {
    let id = pick::workflow(client, &asked.workflow).await?;
    let path = client.in_project(&format!("/workflows/{id}"))?;
    let plan: Value = client.get(&path, &[]).await?;
    let request = Request::post(format!("{path}/{verb}"), json!({ "reason": asked.reason }));
    Ok(Proposal { plan, request })
}

pub async fn retry_instance(client: &Client, asked: End) -> Result<Proposal, Failure> {
    let instance = pick::instance(client, &asked.instance).await?;
    let path = client.in_project(&format!("/app-instances/{}/retry", instance.id))?;
    let request = Request::post(path, json!({ "reason": asked.reason }));
    Ok(Proposal { plan: json!(instance), request })
}

/// Within the project that was named. The platform itself says what would become of each.
pub async fn bulk_retry(client: &Client, asked: BulkRetry) -> Result<Proposal, Failure> {
    let filter = json!({
        "project_id": client.project()?, "kind": asked.kind, "cause": asked.cause,
        "error_signature": asked.error_signature, "ended": asked.ended,
    });
    let is_filtered = asked.kind.is_some() || asked.cause.is_some() || asked.error_signature.is_some();
    let mut body = match (&asked.ids, is_filtered) {
        (Some(ids), false) => json!({ "ids": ids }),
        (None, true) => json!({ "filter": filter }),
        _ => {
            return Err(Failure::usage(
                "name ids, or what those that are meant have in common: one of the two",
            ));
        }
    };
    (body["limit"], body["reason"]) = (json!(asked.limit), json!(asked.reason));
    let path = "/api/v1/admin/workflows/bulk-retry".to_owned();
    body["dry_run"] = json!(true);
    let plan: Value = client.post(&path, &body).await?;
    body["dry_run"] = json!(false);
    // What was shown is what is retried, however many match by then.
    if let Some(results) = plan["results"].as_array() {
        let would = results.iter().filter(|result| result["verdict"] == "would_retry");
        let ids: Vec<&Value> = would.map(|result| &result["id"]).collect();
        if let (false, Some(fields)) = (ids.is_empty(), body.as_object_mut()) {
            fields.remove("filter");
            fields.insert("ids".to_owned(), json!(ids));
        }
    }
    Ok(Proposal { plan, request: Request::post(path, body) })
}

/// What the project gave up of the app before stays given up.
pub async fn entitle(client: &Client, asked: Entitle) -> Result<Proposal, Failure> {
    let path = client.in_project("/apps/entitlements")?;
    let known: Vec<Entitlement> = client.list(&path, &[]).await?;
    let before = known.into_iter().find(|entitlement| entitlement.app_slug == asked.app);
    let plan = json!({ "app": asked.app, "now": before, "enabled": asked.enabled });
    let wanted = SetEntitlement {
        enabled: asked.enabled,
        policy_overrides: before.map(|before| before.policy_overrides).unwrap_or_default(),
        reason: asked.reason,
    };
    let path = format!("{path}/{}", escaped(&asked.app));
    Ok(Proposal { plan, request: Request { method: Method::PUT, path, body: json!(wanted) } })
}
