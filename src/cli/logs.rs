//! `gpuaas logs`: what an instance wrote last, as its node has it; `-f` goes on until the instance ends.

use api_types::InstanceLogs;
use clap::Args;
use domain::{ErrorCode, LogLine};

use super::client::Client;
use super::output::{self, Format};
use super::{pick, sse};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// The instance's name, its id or the beginning of it
    instance: String,
    /// Go on with what it writes next
    #[arg(long, short)]
    follow: bool,
    /// At most so many of the last lines
    #[arg(long, short = 'n', default_value_t = 100, value_name = "N")]
    tail: u32,
    /// Which part of the instance, where it has several
    #[arg(long)]
    member: Option<String>,
    /// Only what was written after this RFC 3339 time
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// When each line was written, too
    #[arg(long, short)]
    timestamps: bool,
}

pub async fn run(args: &LogsArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let instance = pick::instance(client, &args.instance).await?;
    let path = client.in_project(&format!("/app-instances/{}/logs", instance.id))?;
    let mut query = vec![("tail", args.tail.to_string())];
    query.extend(args.member.clone().map(|member| ("member", member)));
    query.extend(args.since.clone().map(|since| ("since", since)));
    if args.follow {
        query.push(("follow", "true".to_owned()));
        return follow(args, client, &sse::with_query(&path, &query), format).await;
    }
    let logs: InstanceLogs = client.get(&path, &query).await?;
    if matches!(format, Format::Json | Format::Yaml) {
        return output::data(format, &logs);
    }
    for line in &logs.lines {
        tell(args, line, format)?;
    }
    if logs.truncated {
        output::say("there is more than these lines: --tail, or --since");
    }
    Ok(())
}

/// A stream that is taken up again tells its last lines once more: what was told stays told.
async fn follow(args: &LogsArgs, client: &Client, path: &str, format: Format) -> Result<(), Failure> {
    let mut last = None;
    let followed = sse::follow(client, path, None, |event| {
        let line: LogLine = event.read()?;
        if last.is_none_or(|last| line.at > last) {
            last = Some(line.at);
            tell(args, &line, format)?;
        }
        Ok(None)
    });
    let ended = followed.await;
    match ended {
        Err(failure) if is_over(&failure) && last.is_some() => Ok(()),
        outcome => outcome,
    }
}

fn is_over(failure: &Failure) -> bool {
    failure.answer.as_ref().is_some_and(|answer| answer.code == ErrorCode::StateConflict)
}

fn tell(args: &LogsArgs, line: &LogLine, format: Format) -> Result<(), Failure> {
    if matches!(format, Format::Json | Format::Yaml) {
        return output::text(&format!("{}\n", serde_json::to_string(line).map_err(Failure::server)?));
    }
    let at = if args.timestamps {
        format!("{} ", line.at.format("%Y-%m-%dT%H:%M:%S%.3fZ"))
    } else {
        String::new()
    };
    output::text(&format!("{at}{}\n", line.text))
}
