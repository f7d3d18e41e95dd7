//! `gpuaas config`: what this binary would run with, and why. Passwords are never shown.

use clap::Subcommand;
use serde::Serialize;

use crate::cli::output::{self, Format};
use crate::config::{Config, Overrides, default_file, variable_name};
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting, its value, and where the value came from
    Show,
    /// Print the default configuration file with its comments
    Default,
    /// Print the certificate that the image registry must trust
    RegistryCertificate,
}

#[derive(Serialize)]
struct Shown {
    key: String,
    value: String,
    origin: String,
    environment: String,
}

pub fn run(command: &ConfigCommand, overrides: &Overrides, format: Format) -> Result<(), Failure> {
    match command {
        ConfigCommand::Show => show(&Config::load(overrides)?, format),
        ConfigCommand::Default => output::text(default_file()),
        ConfigCommand::RegistryCertificate => registry_certificate(&Config::load(overrides)?),
    }
}

fn registry_certificate(config: &Config) -> Result<(), Failure> {
    let missing =
        || Failure::usage("no registry is configured: set `registry.url` and `registry.token_key_file`");
    let authority = config.registry.as_ref().ok_or_else(missing)?.authority()?;
    output::text(&authority.certificate().map_err(Failure::server)?)
}

fn show(config: &Config, format: Format) -> Result<(), Failure> {
    let settings: Vec<Shown> = config
        .values
        .iter()
        .map(|(key, setting)| Shown {
            key: key.to_owned(),
            value: setting.shown(key),
            origin: setting.origin.to_string(),
            environment: variable_name(key),
        })
        .collect();
    let rows: Vec<Vec<String>> =
        settings.iter().map(|one| vec![one.key.clone(), one.value.clone(), one.origin.clone()]).collect();
    output::print(format, &["key", "value", "from"], &rows, &settings)
}
