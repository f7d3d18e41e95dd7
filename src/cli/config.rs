//! `gpuaas config`: what a server here would run with, and why; and the profiles by which the client commands speak to
//! platforms. Passwords and tokens are never shown.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::ClientArgs;
use super::output::{self, Format};
use super::profile::{Profiles, check_name};
use super::session::Session;
use crate::config::{Config, Overrides, Surroundings, default_file, variable_name};
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every setting of a server, its value, and where the value came from
    Show,
    /// Print a server's default configuration file with its comments
    Default,
    /// Print the certificate that the image registry must trust
    RegistryCertificate,
    /// List your profiles
    Profiles,
    /// Choose the profile that speaks when none is named
    Use { name: String },
    /// Change the profile that is named or chosen
    Set(SetArgs),
    /// Remove a profile and its tokens
    Remove { name: String },
}

#[derive(Debug, Args)]
pub struct SetArgs {
    /// Who issues your tokens
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// How the issuer knows this program
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
}

#[derive(Serialize)]
struct Shown {
    key: String,
    value: String,
    origin: String,
    environment: String,
}

#[derive(Serialize)]
struct ShownProfile {
    name: String,
    url: String,
    project: Option<String>,
    current: bool,
    signed_in: bool,
}

pub fn run(
    command: &ConfigCommand,
    overrides: &Overrides,
    client: &ClientArgs,
    format: Format,
) -> Result<(), Failure> {
    match command {
        ConfigCommand::Show => show(&Config::load(overrides)?, format),
        ConfigCommand::Default => output::text(default_file()),
        ConfigCommand::RegistryCertificate => registry_certificate(&Config::load(overrides)?),
        ConfigCommand::Profiles => profiles(&Surroundings::read()?, client, format),
        ConfigCommand::Use { name } => choose(&Surroundings::read()?, name),
        ConfigCommand::Set(args) => set(&Surroundings::read()?, args, client),
        ConfigCommand::Remove { name } => remove(&Surroundings::read()?, name),
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

fn profiles(surroundings: &Surroundings, client: &ClientArgs, format: Format) -> Result<(), Failure> {
    let known = Profiles::read(surroundings)?;
    let current = known.name(client.profile.as_deref(), surroundings);
    let mut shown = Vec::new();
    for (name, profile) in &known.profiles {
        shown.push(ShownProfile {
            name: name.clone(),
            url: profile.url().to_owned(),
            project: profile.project.clone(),
            current: *name == current,
            signed_in: Session::read(surroundings, name)?.is_some(),
        });
    }
    let yes = |what: bool| if what { "yes" } else { "-" }.to_owned();
    let row = |one: &ShownProfile| {
        let project = one.project.clone().unwrap_or_else(|| "-".to_owned());
        vec![one.name.clone(), one.url.clone(), project, yes(one.current), yes(one.signed_in)]
    };
    let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
    output::print(format, &["name", "url", "project", "current", "signed in"], &rows, &shown)
}

fn choose(surroundings: &Surroundings, name: &str) -> Result<(), Failure> {
    let mut known = Profiles::read(surroundings)?;
    known.get(name)?;
    known.current = Some(name.to_owned());
    known.write(surroundings)
}

fn set(surroundings: &Surroundings, args: &SetArgs, client: &ClientArgs) -> Result<(), Failure> {
    let mut known = Profiles::read(surroundings)?;
    let name = known.name(client.profile.as_deref(), surroundings);
    check_name(&name)?;
    let profile = known.profiles.entry(name).or_default();
    for (field, said) in [
        (&mut profile.url, &client.url),
        (&mut profile.project, &client.project),
        (&mut profile.issuer, &args.issuer),
        (&mut profile.client_id, &args.client_id),
    ] {
        if said.is_some() {
            field.clone_from(said);
        }
    }
    known.write(surroundings)
}

fn remove(surroundings: &Surroundings, name: &str) -> Result<(), Failure> {
    let mut known = Profiles::read(surroundings)?;
    check_name(name)?;
    if known.profiles.remove(name).is_none() {
        return Err(Failure::not_found(format!("there is no profile {name}")));
    }
    known.current = known.current.filter(|current| current != name);
    Session::forget(surroundings, name)?;
    known.write(surroundings)
}
