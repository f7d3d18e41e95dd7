//! The tools: each a name, what it is for, and a few calls of the public API.

mod operate;
mod records;

use std::sync::Arc;

use api_types::{AppInstance, AppVersion, CatalogApp, PlanInstance, PlannedAction, WorkflowRun};
use domain::ErrorCode;
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use super::arguments::{
    App, Apps, Artifacts, Audit, Change, Code, Deploy, End, Entitle, Events, Instance, Instances, Logs,
    Nothing, Operate, Submissions, Trace, Usage, Wait, Workflow, Workflows,
};
use crate::cli::client::Client;
use crate::cli::wish::{Wish, offered};
use crate::cli::{pick, plan};
use crate::failure::Failure;

pub fn all() -> Vec<Tool> {
    vec![
        reads::<Nothing>("whoami", "Who you are to the platform, and what you may do where."),
        reads::<Apps>("list_apps", "The apps that the project may deploy."),
        reads::<App>(
            "get_app",
            "An app: its versions, and what one of them needs and can be configured with.",
        ),
        reads::<Instances>("list_instances", "The project's instances that are not decommissioned."),
        reads::<Instance>("get_instance", "An instance, where it is reached, and the runs that acted on it."),
        reads::<Workflows>("list_workflows", "The newest workflow runs of the project."),
        reads::<Workflow>(
            "get_workflow",
            "A run with its steps, and why it does not advance if it does not.",
        ),
        reads::<Wait>("wait_for_workflow", "Waits until a run has settled, at most a minute at a time."),
        reads::<Code>("explain_error", "What an error code means and what to do."),
        reads::<Logs>("get_logs", "The last lines that an instance wrote."),
        reads::<Events>("list_events", "What the project was told, newest first."),
        reads::<Trace>("get_trace", "All that one request set off, in order: runs, steps, events, usage."),
        reads::<Usage>("get_usage", "What was used and what it cost, by the hour, the day or the month."),
        reads::<Audit>("list_audit", "What was done in the project and what was refused, newest first."),
        reads::<Artifacts>("list_artifacts", "The project's artifacts, with their trust and their channels."),
        reads::<Submissions>("list_submissions", "Manifests that were submitted, and what was decided."),
        changes::<Deploy>("deploy", "Deploys an app. Without confirm: the plan, with steps and placement."),
        changes::<Change>("upgrade", "Brings an instance to another version. Without confirm: the plan."),
        changes::<Change>(
            "rollback",
            "Brings an instance back to what ran before. Without confirm: the plan.",
        ),
        changes::<End>("decommission", "Ends an instance for good. Without confirm: the plan."),
        changes::<Operate>(
            "retry_workflow",
            "Retries a run from the step that failed. Without confirm: the run.",
        ),
        changes::<Operate>("pause_workflow", "Stops a run before its next step. Without confirm: the run."),
        changes::<Operate>("resume_workflow", "Lets a paused run go on. Without confirm: the run."),
        changes::<Operate>(
            "cancel_workflow",
            "Ends a run and undoes what it did. Without confirm: the run, with the steps that would be undone.",
        ),
        changes::<End>(
            "retry_instance",
            "Deploys an instance that failed once more. Without confirm: the instance and what is allowed.",
        ),
        changes::<Entitle>(
            "entitle",
            "Lets the project use an app, or no longer. Without confirm: what it may do with it now.",
        ),
    ]
}

/// None where there is no such tool.
pub async fn call(client: &Client, name: &str, arguments: Value) -> Option<Result<Value, Failure>> {
    Some(match name {
        "whoami" => client.get("/api/v1/me", &[]).await,
        "list_apps" => with(arguments, |asked| list_apps(client, asked)).await,
        "get_app" => with(arguments, |asked| get_app(client, asked)).await,
        "list_instances" => with(arguments, |asked| list_instances(client, asked)).await,
        "get_instance" => with(arguments, |asked| get_instance(client, asked)).await,
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
        "explain_error" => with(arguments, explain_error).await,
        "deploy" => with(arguments, |asked| deploy(client, asked)).await,
        "upgrade" => with(arguments, |asked| change(client, PlannedAction::Upgrade, asked)).await,
        "rollback" => with(arguments, |asked| change(client, PlannedAction::Rollback, asked)).await,
        "decommission" => {
            with(arguments, |End { instance, reason, confirm }| {
                change(
                    client,
                    PlannedAction::Decommission,
                    Change { instance, version: None, reason, confirm },
                )
            })
            .await
        }
        "get_logs" => with(arguments, |asked| records::logs(client, asked)).await,
        "list_events" => with(arguments, |asked| records::events(client, asked)).await,
        "get_trace" => with(arguments, |asked| records::trace(client, asked)).await,
        "get_usage" => with(arguments, |asked| records::usage(client, asked)).await,
        "list_audit" => with(arguments, |asked| records::audit(client, asked)).await,
        "list_artifacts" => with(arguments, |asked| records::artifacts(client, asked)).await,
        "list_submissions" => with(arguments, |asked| records::submissions(client, asked)).await,
        "retry_workflow" => with(arguments, |asked| operate::run(client, "retry", asked)).await,
        "pause_workflow" => with(arguments, |asked| operate::run(client, "pause", asked)).await,
        "resume_workflow" => with(arguments, |asked| operate::run(client, "resume", asked)).await,
        "cancel_workflow" => with(arguments, |asked| operate::run(client, "cancel", asked)).await,
        "retry_instance" => with(arguments, |asked| operate::retry_instance(client, asked)).await,
        "entitle" => with(arguments, |asked| operate::entitle(client, asked)).await,
        _ => return None,
    })
}

fn reads<T: JsonSchema>(name: &'static str, about: &'static str) -> Tool {
    tool::<T>(name, about).annotate(ToolAnnotations::default().read_only(true))
}

fn changes<T: JsonSchema>(name: &'static str, about: &'static str) -> Tool {
    let destructive = ["decommission", "cancel_workflow"].contains(&name);
    tool::<T>(name, about).annotate(ToolAnnotations::default().read_only(false).destructive(destructive))
}

fn tool<T: JsonSchema>(name: &'static str, about: &'static str) -> Tool {
    let schema = schemars::schema_for!(T).to_value();
    Tool::new(name, about, Arc::new(schema.as_object().cloned().unwrap_or_default()))
}

async fn with<T: DeserializeOwned, F: Future<Output = Result<Value, Failure>>>(
    arguments: Value,
    act: impl FnOnce(T) -> F,
) -> Result<Value, Failure> {
    match serde_json::from_value(arguments) {
        Ok(asked) => act(asked).await,
        Err(error) => Err(Failure::usage(format!("the arguments are not what the tool takes: {error}"))),
    }
}

/// What was decided and not done.
fn planned(plan: Value) -> Value {
    json!({ "done": false, "plan": plan, "next": "call again with confirm: true to do it" })
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
    let path = format!("/api/v1/apps/catalog/{}", asked.app);
    let app: CatalogApp = client.get(&path, &[("project_id", client.project()?.to_owned())]).await?;
    let versions: Vec<AppVersion> = client.list(&format!("{path}/versions"), &[]).await?;
    let versions: Vec<Value> = versions
        .into_iter()
        .map(|version| json!({ "version": version.version, "status": version.status }))
        .collect();
    let explained = asked.version.or(app.offered_version.clone()).or(app.newest_version.clone());
    let explanation: Value = match explained {
        Some(version) => client.get(&format!("{path}/versions/{version}/explain"), &[]).await?,
        None => Value::Null,
    };
    Ok(json!({ "app": app, "versions": versions, "explanation": explanation }))
}

async fn list_instances(client: &Client, asked: Instances) -> Result<Value, Failure> {
    let mut query = Vec::new();
    query.extend(asked.app.map(|app| ("app", app)));
    query.extend(asked.status.clone().map(|status| ("status", status)));
    let mut all: Vec<AppInstance> = client.list(&client.in_project("/app-instances")?, &query).await?;
    all.retain(|instance| asked.status.is_some() || !instance.status.is_terminal());
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

async fn explain_error(asked: Code) -> Result<Value, Failure> {
    let unknown = |_| Failure::not_found(format!("there is no error code {}", asked.code));
    let code: ErrorCode = asked.code.parse().map_err(unknown)?;
    Ok(crate::cli::explain::page(code))
}

async fn deploy(client: &Client, asked: Deploy) -> Result<Value, Failure> {
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
        artifact: asked.artifact.as_deref().map(id).transpose()?,
        packages: asked.packages,
        credentials: asked
            .credentials
            .iter()
            .map(|(class, text)| Ok((class.clone(), id(text)?)))
            .collect::<Result<_, Failure>>()?,
    };
    let mut wanted = wish.of(client, &asked.app).await?;
    wanted.config = asked.config;
    let path = client.in_project("/app-instances")?;
    if asked.confirm {
        return client.post(&path, &wanted).await;
    }
    client.post(&format!("{path}/plan"), &wanted).await.map(planned)
}

fn id(text: &str) -> Result<Uuid, Failure> {
    text.parse().map_err(|_| Failure::usage(format!("`{text}` is no id")))
}

async fn change(client: &Client, action: PlannedAction, asked: Change) -> Result<Value, Failure> {
    let instance = pick::instance(client, &asked.instance).await?;
    let target_version = match (action, asked.version) {
        (PlannedAction::Upgrade, None) => Some(offered(client, &instance.app_slug).await?),
        (_, version) => version,
    };
    if !asked.confirm {
        let wanted = PlanInstance { action, target_version, artifact_id: None };
        return Ok(planned(json!(plan::of(client, &instance, &wanted).await?)));
    }
    let (verb, body) = match action {
        PlannedAction::Upgrade => {
            ("upgrade", json!({ "target_version": target_version, "reason": asked.reason }))
        }
        PlannedAction::Rollback => {
            ("rollback", json!({ "target_version": target_version, "reason": asked.reason }))
        }
        PlannedAction::Decommission => ("decommission", json!({ "reason": asked.reason })),
    };
    client.post(&client.in_project(&format!("/app-instances/{}/{verb}", instance.id))?, &body).await
}
