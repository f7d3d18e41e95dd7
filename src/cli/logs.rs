//! `gpuaas logs`: what an instance wrote last, as its node has it; `-f` goes on until the instance ends.

use std::collections::{HashMap, VecDeque};

use api_types::InstanceLogs;
use chrono::{DateTime, Utc};
use clap::Args;
use domain::{ErrorCode, LogLine, LogStream};

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

async fn follow(args: &LogsArgs, client: &Client, path: &str, format: Format) -> Result<(), Failure> {
    let mut told = Told { most: args.tail as usize, ..Told::default() };
    let followed = sse::follow(client, path, None, |event| {
        let line: LogLine = event.read()?;
        if told.is_news(event.stream, &line) {
            tell(args, &line, format)?;
        }
        Ok(None)
    });
    let ended = followed.await;
    match ended {
        Err(failure) if is_over(&failure) && !told.last.is_empty() => Ok(()),
        outcome => outcome,
    }
}

type Line = (DateTime<Utc>, bool, String);

/// What was told. A stream that is taken up again begins with its last lines once more, and those are told already; within
/// one stream nothing is told twice, however alike two lines and their times are.
#[derive(Default)]
struct Told {
    /// No stream begins with more lines than these.
    most: usize,
    last: VecDeque<Line>,
    stream: u32,
    /// What the present stream may tell once more, and how often.
    again: HashMap<Line, usize>,
}

impl Told {
    fn is_news(&mut self, stream: u32, line: &LogLine) -> bool {
        let line = (line.at, line.stream == LogStream::Stderr, line.text.clone());
        if stream != self.stream {
            self.stream = stream;
            self.again = HashMap::new();
            for line in &self.last {
                *self.again.entry(line.clone()).or_default() += 1;
            }
        }
        if let Some(left) = self.again.get_mut(&line).filter(|left| **left > 0) {
            *left -= 1;
            return false;
        }
        self.last.push_back(line);
        while self.last.len() > self.most {
            self.last.pop_front();
        }
        true
    }
}

fn is_over(failure: &Failure) -> bool {
    failure.answer.as_ref().is_some_and(|answer| answer.code == ErrorCode::StateConflict)
}

fn tell(args: &LogsArgs, line: &LogLine, format: Format) -> Result<(), Failure> {
    if matches!(format, Format::Json | Format::Yaml) {
        return output::one_of_many(format, line);
    }
    let at = if args.timestamps {
        format!("{} ", line.at.format("%Y-%m-%dT%H:%M:%S%.3fZ"))
    } else {
        String::new()
    };
    output::text(&format!("{at}{}\n", line.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(second: i64, text: &str) -> LogLine {
        let at = DateTime::from_timestamp(second, 0).unwrap_or_default();
        LogLine { at, stream: LogStream::Stdout, text: text.to_owned() }
    }

    #[test]
    fn lines_of_one_moment_are_all_told_and_only_a_new_stream_repeats_them() {
        let mut told = Told { most: 3, ..Told::default() };
        let mut news = |stream, second, text| told.is_news(stream, &line(second, text));
        assert!(news(0, 1, "a") && news(0, 1, "b") && news(0, 1, "b"), "alike, and each was written");
        assert!(!news(1, 1, "a") && !news(1, 1, "b") && !news(1, 1, "b"), "told by the stream before");
        assert!(news(1, 1, "b"), "a third of them is another line");
        assert!(!news(2, 1, "b") && news(2, 2, "b"), "and another time is, too");
    }
}
