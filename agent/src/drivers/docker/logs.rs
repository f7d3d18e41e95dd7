//! What a container wrote, as the engine kept it: the frames of its two streams, each line with the time it came.

use bollard::container::LogOutput;
use bollard::query_parameters::LogsOptionsBuilder;
use chrono::{DateTime, Utc};
use domain::{LogLine, LogStream};
use futures::StreamExt;

use super::{Docker, fault};
use crate::drivers::DriverFault;
use crate::tail::Tail;

impl Docker {
    pub(super) async fn tail_of(
        &self,
        name: &str,
        lines: u32,
        since: Option<DateTime<Utc>>,
    ) -> Result<Tail, DriverFault> {
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).timestamps(true);
        // The engine counts in seconds; what is older within the second is left out here.
        let from = since.and_then(|since| i32::try_from(since.timestamp()).ok()).unwrap_or_default();
        let options = options.tail(&lines.to_string()).since(from).build();
        let mut frames = self.client.logs(name, Some(options));
        let mut tail = Tail::of(lines);
        while let Some(frame) = frames.next().await {
            let frame = frame.map_err(|error| fault("read the log", &error))?;
            let fresh = lines_of(&frame).filter(|line| since.is_none_or(|since| line.at > since));
            fresh.for_each(|line| tail.push(line));
        }
        Ok(tail)
    }
}

/// A frame is a line, or a part of one that is very long.
fn lines_of(frame: &LogOutput) -> impl Iterator<Item = LogLine> {
    let (stream, bytes) = match frame {
        LogOutput::StdErr { message } => (LogStream::Stderr, message),
        LogOutput::StdOut { message } | LogOutput::StdIn { message } | LogOutput::Console { message } => {
            (LogStream::Stdout, message)
        }
    };
    let text = String::from_utf8_lossy(bytes).into_owned();
    let lines: Vec<LogLine> = text.lines().filter_map(|line| stamped(stream, line)).collect();
    lines.into_iter()
}

fn stamped(stream: LogStream, line: &str) -> Option<LogLine> {
    let (at, text) = line.split_once(' ').unwrap_or((line, ""));
    let at = DateTime::parse_from_rfc3339(at).ok()?.with_timezone(&Utc);
    Some(LogLine { at, stream, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_keeps_its_lines_and_their_times() {
        let said = "2026-11-17T10:00:00.000000001Z one\n2026-11-17T10:00:00.000000002Z \nno time\n";
        let lines: Vec<LogLine> = lines_of(&LogOutput::StdErr { message: said.into() }).collect();
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["one", ""], "what has no time was not written by the container");
        assert!(lines.iter().all(|line| line.stream == LogStream::Stderr) && lines[0].at < lines[1].at);
    }
}
