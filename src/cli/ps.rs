//! `gpuaas ps`: the project's instances, newest first; `-w` goes on and shows what changes.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use api_types::AppInstance;
use clap::Args;
use tokio::time::sleep;
use uuid::Uuid;

use super::client::Client;
use super::output::{self, Format};
use super::pick;
use crate::failure::{Failure, Kind};

const LOOK: Duration = Duration::from_secs(1);
const HEADING: [&str; 7] = ["id", "name", "app", "version", "status", "created", "remark"];

#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct PsArgs {
    /// Those that are decommissioned, too
    #[arg(long, short)]
    all: bool,
    /// Only those in these states, separated by commas
    #[arg(long, conflicts_with = "all")]
    status: Option<String>,
    /// Only those of this app
    #[arg(long)]
    app: Option<String>,
    /// Only those that serve this version
    #[arg(long)]
    version: Option<String>,
    /// Go on: on a terminal the list as it is, elsewhere a line for every change
    #[arg(long, short)]
    watch: bool,
}

impl PsArgs {
    async fn ask(&self, client: &Client) -> Result<Vec<AppInstance>, Failure> {
        let status = self.status.clone().or_else(|| (!self.all).then(pick::here));
        let mut query = vec![("order", "newest".to_owned())];
        for (name, value) in [("status", &status), ("app", &self.app), ("version", &self.version)] {
            query.extend(value.clone().map(|value| (name, value)));
        }
        let mut all: Vec<AppInstance> = client.list(&client.in_project("/app-instances")?, &query).await?;
        all.sort_by_key(|instance| Reverse(instance.id));
        Ok(all)
    }
}

pub async fn run(args: &PsArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let all = args.ask(client).await?;
    let screen = args.watch && format == Format::Table && io::stdout().is_terminal();
    if !args.watch {
        print(&all, format)?;
        if all.is_empty() && format == Format::Table {
            output::say("nothing runs here; `gpuaas apps` lists what `gpuaas up` can deploy");
        }
        return Ok(());
    }
    if screen { redraw(args, client, all).await } else { tell_changes(args, client, all, format).await }
}

fn print(all: &[AppInstance], format: Format) -> Result<(), Failure> {
    output::print(format, &HEADING, &all.iter().map(row).collect::<Vec<Vec<String>>>(), &all)
}

/// The whole screen, whenever something changed.
async fn redraw(args: &PsArgs, client: &Client, mut all: Vec<AppInstance>) -> Result<(), Failure> {
    let mut drawn = String::new();
    let mut trouble = None;
    loop {
        let rows: Vec<Vec<String>> = all.iter().map(row).collect();
        let note = trouble.as_ref().map(|trouble| format!("{trouble}\n")).unwrap_or_default();
        let screen = output::table(&HEADING, &rows) + &note;
        if screen != drawn {
            output::text(&format!("\x1b[H\x1b[2J{screen}"))?;
            drawn = screen;
        }
        sleep(LOOK).await;
        match missed(args.ask(client).await)? {
            Ok(now) => (all, trouble) = (now, None),
            Err(why) => trouble = Some(why),
        }
    }
}

/// A question that the platform could not answer is asked again; one that it refused is not.
fn missed<T>(answer: Result<T, Failure>) -> Result<Result<T, String>, Failure> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(failure) if failure.code == Kind::Server => {
            Ok(Err(format!("cannot look just now, and goes on trying: {}", failure.message)))
        }
        Err(failure) => Err(failure),
    }
}

/// A line for every instance that is not as it was; for programs an object on a line of its own.
async fn tell_changes(
    args: &PsArgs,
    client: &Client,
    mut all: Vec<AppInstance>,
    format: Format,
) -> Result<(), Failure> {
    let mut known: HashMap<Uuid, Vec<String>> = HashMap::new();
    let mut was_heard = true;
    loop {
        for instance in all.iter().rev() {
            let row = row(instance);
            if known.insert(instance.id, row.clone()).as_ref() != Some(&row) {
                change(instance, &row, format)?;
            }
        }
        let looked = async {
            sleep(LOOK).await;
            let now = args.ask(client).await?;
            let gone = known.keys().filter(|id| !now.iter().any(|instance| instance.id == **id));
            let mut last: Vec<AppInstance> = Vec::new();
            for id in gone {
                last.push(client.get(&client.in_project(&format!("/app-instances/{id}"))?, &[]).await?);
            }
            Ok((now, last))
        };
        match missed(looked.await)? {
            Ok((now, last)) => {
                // What no longer belongs to the list is told once more, as it is now: that it has ended.
                for instance in last {
                    known.remove(&instance.id);
                    change(&instance, &row(&instance), format)?;
                }
                (all, was_heard) = (now, true);
            }
            Err(why) => {
                if was_heard {
                    output::say(&why);
                }
                was_heard = false;
            }
        }
    }
}

fn change(instance: &AppInstance, row: &[String], format: Format) -> Result<(), Failure> {
    match format {
        Format::Table | Format::Csv => output::text(&format!("{}\n", row.join("  "))),
        Format::Name => output::text(&format!("{}\n", instance.id)),
        Format::Json | Format::Yaml => output::one_of_many(format, instance),
    }
}

fn row(instance: &AppInstance) -> Vec<String> {
    vec![
        instance.id.to_string(),
        instance.display_name.clone(),
        instance.app_slug.clone(),
        instance.version.clone(),
        instance.status.to_string(),
        instance.created_at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        remark(instance),
    ]
}

/// Where it is going, why it is not what it should be, or that the last change failed.
fn remark(instance: &AppInstance) -> String {
    if let Some(reason) = &instance.status_reason {
        return format!("{}: {}", reason.code, reason.message);
    }
    if let Some(target) = &instance.target_version {
        return format!("to {target}");
    }
    let last = instance.last_operation.clone().unwrap_or_default();
    match (last["status"].as_str(), last["kind"].as_str(), last["reason"]["code"].as_str()) {
        (Some("failed"), Some(kind), Some(code)) => format!("the last {kind} failed: {code}"),
        _ => "-".to_owned(),
    }
}
