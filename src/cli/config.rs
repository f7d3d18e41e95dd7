//! `gpuaas config`: what a server here would run with, and why; and the profiles by which the client commands speak to
//! platforms. Passwords and tokens are never shown.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::ClientArgs;
use super::output::{self, Format};
use super::profile::{Profile, Profiles, check_name};
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
        ConfigCommand::Default => defaults(format),
        ConfigCommand::RegistryCertificate => registry_certificate(&Config::load(overrides)?, format),
        ConfigCommand::Profiles => profiles(&Surroundings::read()?, client, format),
        ConfigCommand::Use { name } => choose(&Surroundings::read()?, name, format),
        ConfigCommand::Set(args) => set(&Surroundings::read()?, args, client, format),
        ConfigCommand::Remove { name } => remove(&Surroundings::read()?, name, format),
    }
}

/// The file as it is for people; for programs its values.
fn defaults(format: Format) -> Result<(), Failure> {
    match format {
        Format::Json | Format::Yaml => {
            let values: toml::Table = toml::from_str(default_file()).map_err(Failure::server)?;
            output::data(format, &values)
        }
        Format::Name => {
            let values: toml::Table = toml::from_str(default_file()).map_err(Failure::server)?;
            output::text(&values.keys().map(|section| format!("{section}\n")).collect::<String>())
        }
        Format::Table | Format::Csv => output::text(default_file()),
    }
}

fn registry_certificate(config: &Config, format: Format) -> Result<(), Failure> {
    let missing =
        || Failure::usage("no registry is configured: set `registry.url` and `registry.token_key_file`");
    let authority = config.registry.as_ref().ok_or_else(missing)?.authority()?;
    let certificate = authority.certificate().map_err(Failure::server)?;
    match format {
        Format::Json | Format::Yaml => {
            output::data(format, &serde_json::json!({ "certificate": certificate }))
        }
        Format::Table | Format::Name | Format::Csv => output::text(&certificate),
    }
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
        shown.push(ShownProfile::of(surroundings, name, profile, *name == current)?);
    }
    let rows: Vec<Vec<String>> = shown.iter().map(ShownProfile::row).collect();
    output::print(format, &HEADING, &rows, &shown)
}

const HEADING: [&str; 5] = ["name", "url", "project", "current", "signed in"];

impl ShownProfile {
    fn of(
        surroundings: &Surroundings,
        name: &str,
        profile: &Profile,
        current: bool,
    ) -> Result<ShownProfile, Failure> {
        Ok(ShownProfile {
            name: name.to_owned(),
            url: profile.url().to_owned(),
            project: profile.project.clone(),
            current,
            signed_in: Session::read(surroundings, name)?.is_some(),
        })
    }

    fn row(&self) -> Vec<String> {
        let yes = |what: bool| if what { "yes" } else { "-" }.to_owned();
        let project = self.project.clone().unwrap_or_else(|| "-".to_owned());
        vec![self.name.clone(), self.url.clone(), project, yes(self.current), yes(self.signed_in)]
    }

    /// The one that a command was about.
    fn print(&self, format: Format) -> Result<(), Failure> {
        output::print(format, &HEADING, &[self.row()], self)
    }
}

fn choose(surroundings: &Surroundings, name: &str, format: Format) -> Result<(), Failure> {
    let mut known = Profiles::read(surroundings)?;
    let profile = known.get(name)?;
    known.current = Some(name.to_owned());
    known.write(surroundings)?;
    ShownProfile::of(surroundings, name, &profile, true)?.print(format)
}

fn set(
    surroundings: &Surroundings,
    args: &SetArgs,
    client: &ClientArgs,
    format: Format,
) -> Result<(), Failure> {
    let mut known = Profiles::read(surroundings)?;
    let name = known.name(client.profile.as_deref(), surroundings);
    check_name(&name)?;
    let profile = known.profiles.entry(name.clone()).or_default();
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
    let profile = profile.clone();
    known.write(surroundings)?;
    let current = known.name(None, surroundings) == name;
    ShownProfile::of(surroundings, &name, &profile, current)?.print(format)
}

fn remove(surroundings: &Surroundings, name: &str, format: Format) -> Result<(), Failure> {
    let mut known = Profiles::read(surroundings)?;
    check_name(name)?;
    let removed = known.profiles.remove(name);
    let removed = removed.ok_or_else(|| Failure::not_found(format!("there is no profile {name}")))?;
    known.current = known.current.filter(|current| current != name);
    Session::forget(surroundings, name)?;
    known.write(surroundings)?;
    ShownProfile::of(surroundings, name, &removed, false)?.print(format)
}
