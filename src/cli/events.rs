//! `gpuaas events`: what the project was told, oldest first; `-f` goes on with what is told next, and misses nothing.

use clap::Args;
use domain::event::CloudEvent;
use serde_json::Value;

use super::client::Client;
use super::output::{self, Format};
use super::workflows::word;
use super::{pick, sse};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Only what is about this instance, by its name, its id or the beginning of it
    instance: Option<String>,
    /// Go on with what is told next
    #[arg(long, short)]
    follow: bool,
    /// Only these types, separated by commas, such as apps.instance.running
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only what was set off under this id
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// Only events of this RFC 3339 time or later
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Of those that were told already, at most this many: the newest
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

pub async fn run(args: &EventsArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let path = client.in_project("/events")?;
    let subject = match &args.instance {
        Some(text) => Some(pick::instance(client, text).await?.id.to_string()),
        None => None,
    };
    let mut query = Vec::new();
    for (name, value) in [
        ("type", &args.kind),
        ("subject", &subject),
        ("correlation_id", &args.correlation_id),
        ("since", &args.since),
    ] {
        query.extend(value.clone().map(|value| (name, value)));
    }
    // Whoever follows goes on from the newest event there is, whether or not it is one of those asked for.
    let end = if args.follow { newest(client, &path, &[], 1).await?.pop() } else { None };
    let events = newest(client, &path, &query, args.limit).await?;
    if !args.follow {
        let rows: Vec<Vec<String>> = events.iter().map(row).collect();
        let heading = ["id", "at", "type", "subject", "remark", "correlation id"];
        return output::print(format, &heading, &rows, &events);
    }
    for event in &events {
        line(event, format)?;
    }
    let path = sse::with_query(&path, &query);
    let seen = events.last().into_iter().chain(&end).map(CloudEvent::seq).max();
    let last = seen.unwrap_or_default().to_string();
    // Who has seen nothing misses nothing.
    let mut has_seen = seen.is_some();
    sse::follow(client, &path, Some(last), |event| match event.name.as_str() {
        "event" => {
            has_seen = true;
            line(&event.read()?, format).map(|()| None)
        }
        "reset" if has_seen => {
            output::say("events in between are gone: what follows is everything that is kept");
            Ok(None)
        }
        _ => Ok(None),
    })
    .await
}

/// The newest so many, oldest first.
async fn newest(
    client: &Client,
    path: &str,
    query: &[(&str, String)],
    most: usize,
) -> Result<Vec<CloudEvent>, Failure> {
    let mut query = query.to_vec();
    query.push(("order", "newest".to_owned()));
    let (mut events, _) = client.first::<CloudEvent>(path, &query, most).await?;
    events.reverse();
    Ok(events)
}

fn row(event: &CloudEvent) -> Vec<String> {
    vec![
        event.id.to_string(),
        event.time.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        word(&event.kind),
        event.subject.clone(),
        remark(&event.data),
        event.correlationid.clone(),
    ]
}

/// What of its data says most: where the thing stands, and why if something went wrong.
fn remark(data: &Value) -> String {
    let name = data["display_name"].as_str().or(data["app_slug"].as_str());
    let reason = data["status_reason"]["code"].as_str().or(data["reason"]["code"].as_str());
    let words: Vec<&str> = [name, data["status"].as_str(), reason].into_iter().flatten().collect();
    if words.is_empty() { "-".to_owned() } else { words.join(" ") }
}

/// One event on a line of its own.
fn line(event: &CloudEvent, format: Format) -> Result<(), Failure> {
    match format {
        Format::Table | Format::Csv => output::text(&format!("{}\n", row(event)[1..].join("  "))),
        Format::Name => output::text(&format!("{}\n", event.id)),
        Format::Json | Format::Yaml => output::one_of_many(format, event),
    }
}
