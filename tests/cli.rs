//! The client commands as a script runs them: on a pipe, as a table and as JSON, when all is well and when it is not.
//! What they print is kept under `tests/snapshots`; ids, times and what else differs each time is written alike.

mod login;
mod offline;
mod profiles;
mod publish;
mod runs;

use std::net::SocketAddr;
use std::path::PathBuf;

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

    /// The same from within a story: the platform is served by this very process, which must not stand still.
    pub async fn ask(&self, arguments: &[&str]) -> Said {
        let output = tokio::process::Command::from(self.command(arguments)).output().await;
        output.expect("the binary runs").into()
    }
}

/// A command's whole answer, as its snapshot has it.
pub fn told(said: &Said) -> String {
    let stderr =
        if said.stderr.is_empty() { String::new() } else { format!("--- stderr\n{}", masked(&said.stderr)) };
    format!("exit {}\n--- stdout\n{}{stderr}", said.code.unwrap_or(-1), masked(&said.stdout))
}

/// `x` stands for a hexadecimal digit, `d` for a decimal one; all other letters for themselves.
const MASKS: &[&str] = &["xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "dddd-dd-ddTdd:dd:dd", "dd:dd:dd", "d.ds"];

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
    let text = whole_seconds(&String::from_utf8(bytes).expect("zeros are text"));
    let steady = |line: &str| !line.trim_start().starts_with("\"worker\": \"");
    text.split_inclusive('\n').map(|line| if steady(line) { line.to_owned() } else { worker(line) }).collect()
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
