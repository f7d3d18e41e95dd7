//! The end of a log, within bounds: so many lines, so many bytes, whatever a workload writes. The newest stay.

use std::collections::VecDeque;

use domain::LogLine;
use node_protocol::ReadLogs;

/// A line is cut here.
const LONGEST: usize = 16 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    lines: VecDeque<LogLine>,
    most: usize,
    bytes: usize,
    truncated: bool,
}

impl Tail {
    pub fn of(lines: u32) -> Tail {
        let most = lines.min(ReadLogs::MOST_LINES) as usize;
        Tail { most, ..Tail::default() }
    }

    pub fn push(&mut self, mut line: LogLine) {
        if line.text.len() > LONGEST {
            line.text.truncate(line.text.floor_char_boundary(LONGEST));
            self.truncated = true;
        }
        // The platform's database keeps no NUL.
        if line.text.contains('\0') {
            line.text = line.text.replace('\0', "\u{FFFD}");
        }
        self.bytes += line.text.len();
        self.lines.push_back(line);
        while self.lines.len() > self.most || self.bytes > ReadLogs::MOST_BYTES {
            self.truncated |= self.lines.len() <= self.most;
            self.bytes -= self.lines.pop_front().map_or(0, |gone| gone.text.len());
        }
    }

    /// The lines, oldest first, and whether more were to be told.
    pub fn into_parts(self) -> (Vec<LogLine>, bool) {
        (self.lines.into(), self.truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use domain::LogStream;

    fn line(text: impl Into<String>) -> LogLine {
        LogLine { at: DateTime::UNIX_EPOCH, stream: LogStream::Stdout, text: text.into() }
    }

    fn told(most: u32, texts: impl IntoIterator<Item = String>) -> (Vec<String>, bool) {
        let mut tail = Tail::of(most);
        texts.into_iter().for_each(|text| tail.push(line(text)));
        let (lines, truncated) = tail.into_parts();
        (lines.into_iter().map(|line| line.text).collect(), truncated)
    }

    #[test]
    fn the_last_lines_stay() {
        let (lines, truncated) = told(2, (1..=5).map(|n| n.to_string()));
        assert_eq!((lines, truncated), (vec!["4".to_owned(), "5".to_owned()], false));
    }

    #[test]
    fn whatever_is_written_the_bounds_hold() {
        let (lines, truncated) = told(u32::MAX, (0..2000).map(|_| "é".repeat(20_000)));
        assert!(truncated && lines.iter().all(|line| line.len() <= LONGEST));
        assert!(lines.iter().map(String::len).sum::<usize>() <= ReadLogs::MOST_BYTES);
    }

    #[test]
    fn what_cannot_be_kept_is_replaced() {
        assert_eq!(told(1, ["a\0b".to_owned()]).0, ["a\u{FFFD}b"]);
    }
}
