//! `gpuaas completions SHELL`: what a shell needs to complete this command.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::output;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    shell: Shell,
}

pub fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "gpuaas", &mut script);
    output::text(&String::from_utf8_lossy(&script))
}
