//! `gpuaas workflows pause`, `resume` and `cancel`: what an operator asks of a run. A cancel takes back what was done, so
//! that is shown first.

use api_types::{Operate, Operated, Resume, Step, StepKind, StepState, WorkflowRunDetail};
use clap::Args;
use uuid::Uuid;

use super::word;
use crate::cli::client::Client;
use crate::cli::output::{self, Format};
use crate::cli::{lifecycle, pick, wait};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct OperateArgs {
    /// The run's id, or its beginning
    run: String,
    /// Why; kept with the act for whoever reads the history
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Args)]
pub struct ResumeArgs {
    #[command(flatten)]
    operate: OperateArgs,
    /// Take the run from its owner, which must have been silent for half a minute; whatever that one still writes is refused
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
pub struct CancelArgs {
    #[command(flatten)]
    operate: OperateArgs,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Then wait until everything is undone
    #[arg(long)]
    wait: bool,
}

pub async fn run(verb: &str, args: &OperateArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let id = pick::workflow(client, &args.run).await?;
    tell(&ask(verb, id, args, client).await?, format)
}

pub async fn resume(args: &ResumeArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let id = pick::workflow(client, &args.operate.run).await?;
    let asked = Resume { reason: args.operate.reason.clone(), force: args.force };
    tell(&client.post(&client.in_project(&format!("/workflows/{id}/resume"))?, &asked).await?, format)
}

pub async fn cancel(args: &CancelArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let id = pick::workflow(client, &args.operate.run).await?;
    let detail: WorkflowRunDetail = client.get(&client.in_project(&format!("/workflows/{id}"))?, &[]).await?;
    let may_be = detail.run.allowed_actions.iter().any(|action| action == "cancel");
    let asks = client.may_ask() && !args.yes;
    if may_be && (format == Format::Table || asks) {
        output::say(&preview(&detail));
    }
    if may_be && asks {
        lifecycle::confirm(&format!("cancel {} {id}", detail.run.kind))?;
    }
    let operated = ask("cancel", id, &args.operate, client).await?;
    if !args.wait {
        return tell(&operated, format);
    }
    // That it is cancelled, or has undone everything, is what was asked for.
    match wait::until_settled(client, id, wait::LONGEST, format).await {
        Err(failure) if failure.operation.as_ref().is_some_and(|run| is_undone(run.status)) => Ok(()),
        outcome => outcome,
    }
}

fn is_undone(status: api_types::RunStatus) -> bool {
    matches!(status, api_types::RunStatus::Cancelled | api_types::RunStatus::Compensated)
}

async fn ask(verb: &str, id: Uuid, args: &OperateArgs, client: &Client) -> Result<Operated, Failure> {
    let reason = Operate { reason: args.reason.clone() };
    client.post(&client.in_project(&format!("/workflows/{id}/{verb}"))?, &reason).await
}

fn tell(operated: &Operated, format: Format) -> Result<(), Failure> {
    let run = &operated.run;
    let asked = run.requested.clone().unwrap_or_else(|| "-".to_owned());
    let row = vec![run.id.to_string(), run.kind.clone(), word(&run.status), asked];
    output::print(format, &["id", "kind", "status", "asked for"], &[row], operated)
}

/// What is taken back, in the order it is taken back, and what stays because it has no undo.
fn preview(detail: &WorkflowRunDetail) -> String {
    use StepState::{Ambiguous, Failed, Running, Succeeded};
    let is_effect = |step: &&Step| {
        matches!(step.kind, StepKind::Activity | StepKind::Transact)
            && matches!(step.state, Succeeded | Ambiguous | Running | Failed)
    };
    let effects: Vec<&Step> = detail.steps.iter().filter(is_effect).collect();
    let name = |step: &&Step| {
        if step.key.is_empty() { step.name.clone() } else { format!("{}/{}", step.name, step.key) }
    };
    let undone: Vec<String> = effects.iter().rev().filter(|step| step.undoable).map(name).collect();
    let stays = effects.iter().filter(|step| !step.undoable && step.state == Succeeded);
    let stays: Vec<String> = stays.map(name).collect();
    let or_nothing =
        |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    format!("will be undone  {}\nstays           {}", or_nothing(&undone), or_nothing(&stays))
}
