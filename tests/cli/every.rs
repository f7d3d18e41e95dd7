//! Every command as a table and as JSON, when all is well and when it is not, on a pipe and on a terminal: six snapshots each,
//! which `src/cli.rs` counts against clap's own tree. A few platforms are shared by all of them.

mod billing;
mod changing;
mod machine;
mod nodes;
mod publishing;
mod reading;
mod runs;

use super::{Running, Shell, masked, told};
use crate::support::process::Said;

/// Fields of JSON that are other bytes each time.
const OPAQUE: [&str; 9] = [
    "payload",
    "public_key",
    "signature",
    "key_id",
    "certificate",
    "head_hash",
    "hash",
    "previous_hash",
    "node_key",
];

/// Somebody whose commands are written down.
pub struct Stage<'a> {
    shell: &'a Shell,
    /// What else differs each time, and what is written instead.
    alike: Vec<(String, &'static str)>,
    /// Of what is long by nature, only so many lines.
    lines: usize,
}

impl<'a> Stage<'a> {
    pub fn of(shell: &'a Shell) -> Stage<'a> {
        Stage { shell, alike: vec![(shell.path("").display().to_string(), "~/")], lines: usize::MAX }
    }

    pub fn hiding(mut self, what: impl Into<String>, name: &'static str) -> Stage<'a> {
        self.alike.push((what.into(), name));
        self
    }

    pub fn cut_to(mut self, lines: usize) -> Stage<'a> {
        self.lines = lines;
        self
    }

    pub async fn shows(&self, command: &str, well: &[&str], badly: &[&str]) {
        self.well(command, [well; 3]).await;
        self.badly(command, [badly; 3]).await;
    }

    /// As a table, as JSON and on a terminal. What cannot be done twice has other words each time.
    pub async fn well(&self, command: &str, words: [&[&str]; 3]) {
        self.three(command, "well", words, Some(0)).await;
    }

    pub async fn badly(&self, command: &str, words: [&[&str]; 3]) {
        self.three(command, "badly", words, None).await;
    }

    /// A command that does its work and answers no.
    pub async fn finds(&self, command: &str, words: &[&str]) {
        self.three(command, "well", [words; 3], Some(6)).await;
    }

    /// Without a code it must be any but that of success.
    async fn three(
        &self,
        command: &str,
        how: &str,
        [table, json, terminal]: [&[&str]; 3],
        code: Option<i32>,
    ) {
        let json = [json, &["-o", "json"]].concat();
        for (way, words) in [("table", table), ("json", &json), ("terminal", terminal)] {
            let said = if way == "terminal" {
                let seen = self.shell.agrees(words).await;
                Said { stdout: readable(&seen.stdout), ..seen }
            } else {
                self.shell.ask(words).await
            };
            let is_right = code.map_or(said.code != Some(0), |code| said.code == Some(code));
            assert!(is_right, "{words:?}: {said:?}");
            self.keep(&format!("{command}_{how}_{way}"), words, &said);
        }
    }

    /// A command that goes on: for programs it brings one thing after the other, each whole by itself.
    pub async fn follows(&self, words: &[&str], until: &str) {
        for format in ["table", "json", "yaml", "name"] {
            let words = [words, &["-o", format]].concat();
            let mut running = Running::start(self.shell.command(&words));
            let said = running.says(if format == "name" { "\n" } else { until }).await.to_owned();
            running.end().await;
            let first = said.lines().next().unwrap_or_default();
            match format {
                "json" => {
                    assert!(serde_json::from_str::<serde_json::Value>(first).is_ok(), "{words:?}: {said}")
                }
                "yaml" => assert_eq!(first, "---", "{words:?}: {said}"),
                _ => assert!(!first.is_empty() && !first.starts_with('{'), "{words:?}: {said}"),
            }
        }
    }

    fn keep(&self, name: &str, words: &[&str], said: &Said) {
        let mut text = format!("$ gpuaas {}\n{}", words.join(" "), told(said));
        for (what, alike) in &self.alike {
            text = text.replace(what, alike);
        }
        let text: String = milliseconds(&masked(&text)).split_inclusive('\n').map(opaque).collect();
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(name, shortened(&text, self.lines));
        });
    }
}

fn milliseconds(text: &str) -> String {
    let (before, last) = text.rsplit_once(" ms ").unwrap_or(("", text));
    let each = before.split(" ms ").filter(|_| !before.is_empty());
    let alike =
        each.map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-').to_owned() + "N ms ");
    alike.chain([last.to_owned()]).collect()
}

fn opaque(line: &str) -> String {
    if let Some((before, rest)) = line.split_once("\"expected_seconds\": ")
        && rest.starts_with(|c: char| c.is_ascii_digit())
    {
        let comma = if rest.trim_end().ends_with(',') { "," } else { "" };
        return format!("{before}\"expected_seconds\": 0.0{comma}\n");
    }
    let mut parts = line.split("\"worker\":\"");
    let first = parts.next().unwrap_or_default().to_owned();
    let line = parts.fold(first, |before, after| {
        let (_, rest) = after.split_once('"').expect("a closing quote");
        format!("{before}\"worker\":\"a process\"{rest}")
    });
    let line = line.as_str();
    let field = line.trim_start().strip_prefix('"').and_then(|rest| rest.split_once("\": \""));
    match field {
        Some((name, _)) if OPAQUE.contains(&name) => {
            let (before, _) = line.split_once(": ").expect("a field");
            let comma = if line.trim_end().ends_with(',') { "," } else { "" };
            format!("{before}: \"…\"{comma}\n")
        }
        _ => line.to_owned(),
    }
}

fn shortened(text: &str, lines: usize) -> String {
    if lines == usize::MAX {
        return text.to_owned();
    }
    let cut = |line: &str| {
        let short: String = line.chars().take(160).collect();
        if short.len() < line.len() { format!("{short}…") } else { short }
    };
    let mut short: Vec<String> = text.lines().take(lines).map(cut).collect();
    if text.lines().count() > lines {
        short.push("…".to_owned());
    }
    short.join("\n")
}

/// What is left on a screen, with colours as words. Lines that are drawn anew while something goes on are seen only while it
/// does, and other stories look at them.
fn readable(text: &str) -> String {
    let mut seen = String::new();
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let drawn = line.trim_end_matches('\r').split("\r\x1b[K");
        let lasting = drawn.filter(|drawn| !drawn.starts_with('…') && !drawn.contains(" s left"));
        seen.extend(lasting.chain([end]));
    }
    for (code, word) in [
        ("\x1b[H\x1b[2J", "‹clear›"),
        ("\x1b[0m", "‹›"),
        ("\x1b[1m", "‹bold›"),
        ("\x1b[4m", "‹underlined›"),
        ("\x1b[31m", "‹red›"),
        ("\x1b[32m", "‹green›"),
        ("\x1b[33m", "‹yellow›"),
        ("\r", "\n"),
    ] {
        seen = seen.replace(code, word);
    }
    assert!(!seen.contains('\x1b'), "a code without a word: {seen:?}");
    seen
}
