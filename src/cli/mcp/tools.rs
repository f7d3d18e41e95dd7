//! The tools: each a name, what it is for, and a few calls of the public API. One that changes something only puts its
//! request together, beside what it would do; `call` alone sends it, once it is confirmed.

mod change;
mod operate;
mod project;
mod records;
mod supply;

use std::sync::Arc;

use api_types::{AppInstance, AppVersion, CatalogApp, PlannedAction, WorkflowRun};
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::arguments::{
    App, Apps, Artifacts, Audit, BulkRetry, Change, Code, DeleteServiceAccount, Deploy, End, Entitle, Events,
    Instance, Instances, Logs, MoveVersion, NewServiceAccount, NewWebhook, Nothing, Operate, Promote,
    PublishIntent, Replay, RotateKey, SetBudget, SetServiceAccount, SetWebhook, Submissions, Trace, Usage,
    Wait, Webhook, Workflow, Workflows,
};
use super::plans::{Plans, Proposal};
use crate::cli::client::{Client, escaped};
use crate::cli::{explain, pick};
use crate::failure::Failure;

/// Tools whose effect nothing brings back.
const DESTRUCTIVE: [&str; 4] =
    ["decommission", "cancel_workflow", "delete_webhook", "delete_service_account"];

pub fn all() -> Vec<Tool> {
    let mut all = to_read();
    all.extend(to_change());
    all
}

fn to_read() -> Vec<Tool> {
    vec![
        reads::<Nothing>("whoami", "Who you are to the platform, and what you may do where."),
        reads::<Apps>("list_apps", "The apps that the project may deploy."),
        reads::<App>(
            "get_app",
            "An app: its versions, and what one of them needs and can be configured with.",
        ),
        reads::<Instances>("list_instances", "The project's instances that are not decommissioned."),
        reads::<Instance>("get_instance", "An instance, where it is reached, and the runs that acted on it."),
        reads::<Instance>("get_receipt", "That an instance left nothing behind, signed."),
        reads::<Workflows>("list_workflows", "The newest workflow runs of the project."),
        reads::<Workflow>(
            "get_workflow",
            "A run with its steps, and why it does not advance if it does not.",
        ),
        reads::<Wait>("wait_for_workflow", "Waits until a run has settled, at most a minute at a time."),
        reads::<Code>(
            "explain_error",
            "What an error code or the reason of an instance means and what to do.",
        ),
        reads::<Logs>("get_logs", "The last lines that an instance wrote."),
        reads::<Events>("list_events", "What the project was told, newest first."),
        reads::<Trace>("get_trace", "All that one request set off, in order: runs, steps, events, usage."),
        reads::<Usage>("get_usage", "What was used and what it cost, by the hour, the day or the month."),
        reads::<Nothing>("get_budget", "What the project may spend in a month, and has spent."),
        reads::<Audit>("list_audit", "What was done in the project and what was refused, newest first."),
        reads::<Artifacts>("list_artifacts", "The project's artifacts, with their trust and their channels."),
        reads::<Submissions>("list_submissions", "Manifests that were submitted, and what was decided."),
        reads::<Nothing>("list_webhooks", "Where the project's events are sent."),
        reads::<Webhook>("list_deliveries", "What was sent to a webhook, and what became of it."),
        reads::<Nothing>("list_service_accounts", "The project's machines, without their keys."),
    ]
}

fn to_change() -> Vec<Tool> {
    vec![
        changes::<Deploy>("deploy", "Deploys an app. The plan has steps and placement."),
        changes::<Change>("upgrade", "Brings an instance to another version."),
        changes::<Change>("rollback", "Brings an instance back to what ran before."),
        changes::<End>("decommission", "Ends an instance for good."),
        changes::<End>("retry_instance", "Deploys an instance that failed once more."),
        changes::<Operate>("retry_workflow", "Retries a run from the step that failed."),
        changes::<Operate>("pause_workflow", "Stops a run before its next step."),
        changes::<Operate>("resume_workflow", "Lets a paused run go on."),
        changes::<Operate>("cancel_workflow", "Ends a run and undoes what it did; the plan has its steps."),
        changes::<BulkRetry>(
            "bulk_retry",
            "Retries many runs that failed alike, for the platform's own people; the plan has a verdict for each.",
        ),
        changes::<Entitle>("entitle", "Lets the project use an app, or no longer."),
        changes::<PublishIntent>(
            "publish_intent",
            "Asks for the permission to publish an image or a file; the answer has a credential that works once.",
        ),
        changes::<Promote>("promote_artifact", "Verifies an artifact afresh and lets it reach a channel."),
        changes::<MoveVersion>(
            "move_version",
            "Stages, tries out, publishes, rolls back, deprecates or retires a version; the plan has its gates.",
        ),
        changes::<NewWebhook>(
            "create_webhook",
            "Sends events somewhere; the answer has its secret, this once.",
        ),
        changes::<SetWebhook>("set_webhook", "Stops sending to a webhook, or goes on."),
        changes::<Replay>("replay_webhook", "Sends deliveries again."),
        changes::<Webhook>("delete_webhook", "Sends no more events there, and forgets it."),
        changes::<NewServiceAccount>(
            "create_service_account",
            "Makes an identity for a machine; the answer has its private key, this once.",
        ),
        changes::<SetServiceAccount>("set_service_account", "Disables a machine, or enables it again."),
        changes::<RotateKey>(
            "rotate_service_account_key",
            "Gives a machine a new key; the answer has it, this once.",
        ),
        changes::<DeleteServiceAccount>("delete_service_account", "Ends a machine's identity for good."),
        changes::<SetBudget>(
            "set_budget",
            "Says what the project may spend in a month, and what happens then.",
        ),
    ]
}

/// None where there is no such tool.
pub async fn call(
    client: &Client,
    plans: &Plans,
    name: &str,
    mut arguments: Value,
) -> Option<Result<Value, Failure>> {
    if !to_change().iter().any(|tool| tool.name == name) {
        return read(client, name, arguments).await;
    }
    match arguments.as_object_mut().and_then(|fields| fields.remove("confirm")) {
        None => match propose(client, name, arguments.clone()).await? {
            Ok(proposal) => Some(Ok(plans.keep(name, arguments, proposal))),
            Err(failure) => Some(Err(failure)),
        },
        Some(Value::String(token)) => Some(match plans.take(&token, name, &arguments) {
            Ok(request) => client.act(request.method, &request.path, &request.body).await,
            Err(failure) => Err(failure),
        }),
        Some(_) => Some(Err(Failure::usage(
            "confirm is the token that the plan answered: call without it first, and look at the plan",
        ))),
    }
}

async fn read(client: &Client, name: &str, arguments: Value) -> Option<Result<Value, Failure>> {
    Some(match name {
        "whoami" => with(arguments, |_: Nothing| client.get("/api/v1/me", &[])).await,
        "list_apps" => with(arguments, |asked| list_apps(client, asked)).await,
        "get_app" => with(arguments, |asked| get_app(client, asked)).await,
        "list_instances" => with(arguments, |asked| list_instances(client, asked)).await,
        "get_instance" => with(arguments, |asked| get_instance(client, asked)).await,
        "get_receipt" => with(arguments, |asked| records::receipt(client, asked)).await,
        "list_workflows" => with(arguments, |asked| list_workflows(client, asked)).await,
        "get_workflow" => {
            with(arguments, |asked: Workflow| get_workflow(client, asked.workflow, Vec::new())).await
        }
        "wait_for_workflow" => {
            let seconds = |asked: &Wait| format!("{}s", asked.seconds.unwrap_or(30).clamp(1, 60));
            with(arguments, |asked: Wait| {
                get_workflow(client, asked.workflow.clone(), vec![("wait", seconds(&asked))])
            })
            .await
        }
        "explain_error" => with(arguments, async |asked: Code| explain::about(&asked.code)).await,
        "get_logs" => with(arguments, |asked| records::logs(client, asked)).await,
        "list_events" => with(arguments, |asked| records::events(client, asked)).await,
        "get_trace" => with(arguments, |asked| records::trace(client, asked)).await,
        "get_usage" => with(arguments, |asked| records::usage(client, asked)).await,
        "get_budget" => with(arguments, |_: Nothing| project::budget(client)).await,
        "list_audit" => with(arguments, |asked| records::audit(client, asked)).await,
        "list_artifacts" => with(arguments, |asked| records::artifacts(client, asked)).await,
        "list_submissions" => with(arguments, |asked| records::submissions(client, asked)).await,
        "list_webhooks" => with(arguments, |_: Nothing| project::webhooks(client)).await,
        "list_deliveries" => with(arguments, |asked| project::deliveries(client, asked)).await,
        "list_service_accounts" => with(arguments, |_: Nothing| project::service_accounts(client)).await,
        _ => return None,
    })
}

async fn propose(client: &Client, name: &str, arguments: Value) -> Option<Result<Proposal, Failure>> {
    Some(match name {
        "deploy" => with(arguments, |asked| change::deploy(client, asked)).await,
        "upgrade" => with(arguments, |asked| change::version(client, PlannedAction::Upgrade, asked)).await,
        "rollback" => with(arguments, |asked| change::version(client, PlannedAction::Rollback, asked)).await,
        "decommission" => with(arguments, |asked| change::end(client, asked)).await,
        "retry_instance" => with(arguments, |asked| operate::retry_instance(client, asked)).await,
        "retry_workflow" => with(arguments, |asked| operate::run(client, "retry", asked)).await,
        "pause_workflow" => with(arguments, |asked| operate::run(client, "pause", asked)).await,
        "resume_workflow" => with(arguments, |asked| operate::run(client, "resume", asked)).await,
        "cancel_workflow" => with(arguments, |asked| operate::run(client, "cancel", asked)).await,
        "bulk_retry" => with(arguments, |asked| operate::bulk_retry(client, asked)).await,
        "entitle" => with(arguments, |asked| operate::entitle(client, asked)).await,
        "publish_intent" => with(arguments, |asked| supply::publish_intent(client, asked)).await,
        "promote_artifact" => with(arguments, |asked| supply::promote(client, asked)).await,
        "move_version" => with(arguments, |asked| supply::move_version(client, asked)).await,
        "create_webhook" => with(arguments, |asked| project::create_webhook(client, asked)).await,
        "set_webhook" => with(arguments, |asked| project::set_webhook(client, asked)).await,
        "replay_webhook" => with(arguments, |asked| project::replay(client, asked)).await,
        "delete_webhook" => with(arguments, |asked| project::delete_webhook(client, asked)).await,
        "create_service_account" => with(arguments, |asked| project::create_account(client, asked)).await,
        "set_service_account" => with(arguments, |asked| project::set_account(client, asked)).await,
        "rotate_service_account_key" => with(arguments, |asked| project::rotate_key(client, asked)).await,
        "delete_service_account" => with(arguments, |asked| project::delete_account(client, asked)).await,
        "set_budget" => with(arguments, |asked| project::set_budget(client, asked)).await,
        _ => return None,
    })
}

fn reads<T: JsonSchema>(name: &'static str, about: &'static str) -> Tool {
    tool::<T>(name, about, None).annotate(ToolAnnotations::default().read_only(true))
}

fn changes<T: JsonSchema>(name: &'static str, about: &'static str) -> Tool {
    let confirm = json!({
        "type": "string",
        "description": "The token that the plan answered. Without it nothing is done: the answer is the plan and its token.",
    });
    let destructive = DESTRUCTIVE.contains(&name);
    tool::<T>(name, about, Some(confirm))
        .annotate(ToolAnnotations::default().read_only(false).destructive(destructive))
}

fn tool<T: JsonSchema>(name: &'static str, about: &'static str, confirm: Option<Value>) -> Tool {
    let mut schema = schemars::schema_for!(T).to_value();
    if let Some(confirm) = confirm {
        schema["properties"]["confirm"] = confirm;
    }
    Tool::new(name, about, Arc::new(schema.as_object().cloned().unwrap_or_default()))
}

async fn with<T: DeserializeOwned, O, F: Future<Output = Result<O, Failure>>>(
    arguments: Value,
    act: impl FnOnce(T) -> F,
) -> Result<O, Failure> {
    match serde_json::from_value(arguments) {
        Ok(asked) => act(asked).await,
        Err(error) => Err(Failure::usage(format!("the arguments are not what the tool takes: {error}"))),
    }
}

async fn list_apps(client: &Client, asked: Apps) -> Result<Value, Failure> {
    let mut query = vec![("project_id", client.project()?.to_owned())];
    if !asked.all {
        query.push(("entitled", "true".to_owned()));
    }
    let apps: Vec<CatalogApp> = client.list("/api/v1/apps/catalog", &query).await?;
    Ok(json!({ "items": apps }))
}

async fn get_app(client: &Client, asked: App) -> Result<Value, Failure> {
    let path = format!("/api/v1/apps/catalog/{}", escaped(&asked.app));
    let app: CatalogApp = client.get(&path, &[("project_id", client.project()?.to_owned())]).await?;
    let versions: Vec<AppVersion> = client.list(&format!("{path}/versions"), &[]).await?;
    let versions: Vec<Value> = versions
        .into_iter()
        .map(|version| json!({ "version": version.version, "status": version.status }))
        .collect();
    let explained = asked.version.or(app.offered_version.clone()).or(app.newest_version.clone());
    let explanation: Value = match explained {
        Some(version) => client.get(&format!("{path}/versions/{}/explain", escaped(&version)), &[]).await?,
        None => Value::Null,
    };
    Ok(json!({ "app": app, "versions": versions, "explanation": explanation }))
}

async fn list_instances(client: &Client, asked: Instances) -> Result<Value, Failure> {
    let mut query = vec![("status", asked.status.unwrap_or_else(pick::here))];
    query.extend(asked.app.map(|app| ("app", app)));
    let all: Vec<AppInstance> = client.list(&client.in_project("/app-instances")?, &query).await?;
    Ok(json!({ "items": all }))
}

async fn get_instance(client: &Client, asked: Instance) -> Result<Value, Failure> {
    let instance = pick::instance(client, &asked.instance).await?;
    let path = client.in_project(&format!("/app-instances/{}", instance.id))?;
    let access: Value = client.get(&format!("{path}/access"), &[]).await?;
    let runs: Vec<WorkflowRun> = client.list(&format!("{path}/operations"), &[]).await?;
    Ok(json!({ "instance": instance, "endpoints": access["endpoints"], "operations": runs }))
}

async fn list_workflows(client: &Client, asked: Workflows) -> Result<Value, Failure> {
    let mut query = vec![("limit", "50".to_owned())];
    query.extend(asked.status.map(|status| ("status", status)));
    query.extend(asked.kind.map(|kind| ("kind", kind)));
    query.extend(asked.correlation_id.map(|id| ("correlation_id", id)));
    client.get(&client.in_project("/workflows")?, &query).await
}

async fn get_workflow(
    client: &Client,
    workflow: String,
    query: Vec<(&'static str, String)>,
) -> Result<Value, Failure> {
    let id = pick::workflow(client, &workflow).await?;
    client.get(&client.in_project(&format!("/workflows/{id}"))?, &query).await
}
