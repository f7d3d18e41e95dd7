//! `gpuaas completions SHELL`: what a shell needs to complete this command.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::output::{self, Format};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    shell: Shell,
}

/// A script is for a shell whatever the format; for programs it is a field.
pub fn run(args: &CompletionsArgs, format: Format) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "gpuaas", &mut script);
    let (shell, script) = (args.shell.to_string(), String::from_utf8_lossy(&script));
    match format {
        Format::Table | Format::Csv => output::text(&script),
        Format::Name => output::text(&format!("{shell}\n")),
        Format::Json | Format::Yaml => {
            output::data(format, &serde_json::json!({ "shell": shell, "script": script }))
        }
    }
}
