//! The client commands as a script runs them: on a pipe, as a table and as JSON, when all is well and when it is not.
//! What they print is kept under `tests/snapshots`; ids, times and what else differs each time is written alike.

mod every;
mod instances;
mod login;
mod lost;
mod mcp;
mod names;
mod offline;
mod profiles;
mod publish;
mod reach;
mod runs;
mod terminal;
mod told;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::cluster::Folder;
use crate::support::process::{Said, gpuaas};
use crate::support::realm;

/// Somebody at a shell, with a home of their own.
pub struct Shell {
    home: Folder,
    variables: Vec<(&'static str, String)>,
}

impl Shell {
    pub fn new() -> Shell {
        Shell { home: Folder::new(), variables: Vec::new() }
    }

    /// In the example project of the platform there, by this token.
    pub fn at(address: SocketAddr, token: &str) -> Shell {
        let variables = vec![
            ("GPUAAS_BASE_URL", format!("http://{address}")),
            ("GPUAAS_TOKEN", token.to_owned()),
            ("GPUAAS_PROJECT", realm::EXAMPLE.to_string()),
        ];
        Shell { variables, ..Shell::new() }
    }

    pub fn set(&mut self, variable: &'static str, value: String) {
        self.variables.push((variable, value));
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.home.0.join(below)
    }

    pub fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = gpuaas(arguments);
        command.env("HOME", &self.home.0).env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().expect("the binary runs").into()
    }

    /// The same command, on a terminal of its own.
    pub fn on_terminal(&self, arguments: &[&str]) -> std::process::Command {
        let command = self.command(arguments);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<String> = words.map(|word| format!("'{}'", word.to_string_lossy())).collect();
        let mut terminal = std::process::Command::new("script");
        terminal.args(["--quiet", "--return", "--command", &words.join(" "), "/dev/null"]);
        terminal.current_dir("/").env_remove("NO_COLOR");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => terminal.env(name, value),
                None => terminal.env_remove(name),
            };
        }
        terminal
    }

    /// What a person sees on their terminal who says yes to whatever they are asked.
    pub async fn agrees(&self, arguments: &[&str]) -> Said {
        let mut terminal = tokio::process::Command::from(self.on_terminal(arguments));
        let mut child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a terminal");
        let mut keyboard = child.stdin.take().expect("piped");
        let mut screen = child.stdout.take().expect("piped");
        let (mut seen, mut bytes, mut answered) = (Vec::new(), [0; 4096], 0);
        loop {
            let read = screen.read(&mut bytes).await.expect("a screen");
            if read == 0 {
                break;
            }
            seen.extend(&bytes[..read]);
            let asked = String::from_utf8_lossy(&seen).matches("[y/N] ").count();
            if asked > answered {
                answered = asked;
                keyboard.write_all(b"y\n").await.expect("typed");
            }
        }
        let code = child.wait().await.expect("it ends").code();
        drop(keyboard);
        Said { code, stdout: String::from_utf8_lossy(&seen).into_owned(), stderr: String::new() }
    }

    /// What a person who types this sees on their terminal.
    pub async fn types(&self, arguments: &[&str], typed: &str) -> Said {
        let mut command = tokio::process::Command::from(self.on_terminal(arguments));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a terminal");
        let mut keyboard = child.stdin.take().expect("piped");
        keyboard.write_all(typed.as_bytes()).await.expect("typed");
        let said = child.wait_with_output().await.expect("it ends").into();
        drop(keyboard);
        said
    }

    /// The same from within a story: the platform is served by this very process, which must not stand still.
    pub async fn ask(&self, arguments: &[&str]) -> Said {
        let output = tokio::process::Command::from(self.command(arguments)).output().await;
        output.expect("the binary runs").into()
    }
}

/// A command that its story leaves running. It ends with the story.
pub struct Running {
    child: tokio::process::Child,
    stdout: tokio::process::ChildStdout,
    heard: String,
}

impl Running {
    pub fn start(command: std::process::Command) -> Running {
        let mut command = tokio::process::Command::from(command);
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("the binary runs");
        let stdout = child.stdout.take().expect("piped");
        Running { child, stdout, heard: String::new() }
    }

    /// Returns once it has said so, with all it said until then.
    pub async fn says(&mut self, words: &str) -> &str {
        let mut bytes = [0; 4096];
        while !self.heard.contains(words) {
            let read = self.stdout.read(&mut bytes).await.expect("stdout");
            assert!(read > 0, "it ended without a word of {words:?}: {}", self.heard);
            self.heard.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        &self.heard
    }

    pub async fn end(mut self) {
        self.child.kill().await.expect("it can be ended");
    }
}

/// A command's whole answer, as its snapshot has it.
pub fn told(said: &Said) -> String {
    // Whether a worker had taken it already when it was first looked at is chance.
    let stderr = masked(&said.stderr).replace(" is queued\n", " is running\n");
    let stderr = if stderr.is_empty() { stderr } else { format!("--- stderr\n{stderr}") };
    format!("exit {}\n--- stdout\n{}{stderr}", said.code.unwrap_or(-1), masked(&said.stdout))
}

/// `x` stands for a hexadecimal digit, `d` for a decimal one; all other letters for themselves.
const MASKS: &[&str] = &[
    "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
    "xxxxxxxx…xxxx",
    "dddd-dd-ddTdd:dd:dd",
    "dddd-dd-dd",
    "dd:dd:dd",
];
/// Headings of columns that are as wide as the machine is slow, or its folders are deep.
const OF_ANY_WIDTH: [&str; 2] = ["  TOOK", "FILE  "];

/// Every place where a mask fits, with zeros for its digits: columns stay where they were.
fn masked(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for mask in MASKS {
        let mask = mask.as_bytes();
        for at in 0..bytes.len().saturating_sub(mask.len() - 1) {
            let window = &bytes[at..at + mask.len()];
            let fits = window.iter().zip(mask).all(|(byte, sign)| match sign {
                b'x' => byte.is_ascii_hexdigit(),
                b'd' => byte.is_ascii_digit(),
                sign => byte == sign,
            });
            if fits {
                for (byte, sign) in bytes[at..].iter_mut().zip(mask) {
                    if matches!(sign, b'x' | b'd') {
                        *byte = b'0';
                    }
                }
            }
        }
    }
    let text = how_long(&whole_seconds(&String::from_utf8(bytes).expect("zeros are text")));
    let steady = |line: &str| !line.trim_start().starts_with("\"worker\": \"");
    text.split_inclusive('\n').map(|line| if steady(line) { line.to_owned() } else { worker(line) }).collect()
}

/// Every `12.3s` as `0.0s`; where a column of them may be wider or not, all columns are two spaces apart.
fn how_long(text: &str) -> String {
    let mut alike = String::new();
    let mut rest = text;
    while let Some(dot) = rest.find('.') {
        let (before, after) = (&rest[..dot], &rest[dot + 1..]);
        let is_one = after.starts_with(|c: char| c.is_ascii_digit()) && after[1..].starts_with('s');
        let whole = before.trim_end_matches(|c: char| c.is_ascii_digit());
        if is_one && whole.len() < before.len() {
            alike.push_str(whole);
            alike.push_str("0.0s");
            rest = &after[2..];
            // What follows in a column that is wide enough stays where it was.
            if rest.starts_with("  ") {
                alike.push_str(&" ".repeat(before.len() - whole.len() - 1));
            }
        } else {
            alike.push_str(&rest[..=dot]);
            rest = after;
        }
    }
    alike.push_str(rest);
    if !OF_ANY_WIDTH.iter().any(|heading| alike.contains(heading)) {
        return alike;
    }
    let mut closer = String::new();
    for line in alike.split_inclusive('\n') {
        let indented = line.len() - line.trim_start_matches(' ').len();
        let mut cells = line[indented..]
            .split("  ")
            .map(|cell| cell.trim_start_matches(' '))
            .filter(|cell| !cell.is_empty());
        closer.push_str(&line[..indented]);
        closer.push_str(cells.next().unwrap_or_default());
        cells.for_each(|cell| closer.extend(["  ", cell]));
    }
    closer
}

/// A time has as many decimals as it needs, which is luck.
fn whole_seconds(text: &str) -> String {
    let mut parts = text.split("0000-00-00T00:00:00.");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, after| {
        before + "0000-00-00T00:00:00" + after.trim_start_matches(|c: char| c.is_ascii_digit())
    })
}

/// Processes are named anew each time.
fn worker(line: &str) -> String {
    let (before, _) = line.split_once(':').expect("a field");
    let comma = if line.trim_end().ends_with(',') { "," } else { "" };
    format!("{before}: \"a process\"{comma}\n")
}
