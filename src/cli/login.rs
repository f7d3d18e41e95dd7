//! `gpuaas login`: signs a person in at the platform's issuer and keeps the token in the profile. A browser anywhere
//! shows the sign-in page (RFC 8628); issuers that allow it, such as that of `gpuaas dev`, also take a password.

mod device;
pub mod oauth;

use std::io::{self, Read};

use api_types::Me;
use clap::Args;
use domain::Secret;
use serde::Serialize;

use self::oauth::{Discovery, SignIn};
use super::ClientArgs;
use super::client::{Client, http};
use super::output::{self, Format};
use super::profile::{Profile, Profiles, check_name};
use crate::config::Surroundings;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct LoginArgs {
    /// Who issues your tokens [default: the platform's own issuer]
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// How the issuer knows this program [default: gpuaas]
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Sign in by name and password, where the issuer allows it
    #[arg(long, value_name = "NAME", requires = "password_stdin")]
    username: Option<String>,
    /// Read the password from stdin
    #[arg(long, requires = "username")]
    password_stdin: bool,
}

#[derive(Serialize)]
struct SignedIn<'a> {
    profile: &'a str,
    url: &'a str,
    name: &'a str,
    project: Option<&'a str>,
}

pub async fn run(
    args: &LoginArgs,
    client: &ClientArgs,
    surroundings: &Surroundings,
    format: Format,
) -> Result<(), Failure> {
    let mut profiles = Profiles::read(surroundings)?;
    let name = profiles.name(client.profile.as_deref(), surroundings);
    check_name(&name)?;
    let mut profile = profiles.profiles.get(&name).cloned().unwrap_or_default();
    adopt(&mut profile, args, client, surroundings);

    let issuer = profile.issuer.clone().unwrap_or_else(|| format!("{}/realms/gpuaas", profile.url()));
    let client_id = profile.client_id.clone().unwrap_or_else(|| "gpuaas".to_owned());
    let http = http()?;
    let found = Discovery::of(&http, &issuer).await?;
    let sign_in = SignIn { http: &http, discovery: &found, client_id: &client_id };
    let session = match &args.username {
        Some(username) => sign_in.by_password(username, &password()?).await?,
        None if client.no_input => {
            return Err(Failure::usage(
                "signing in takes a person: use --username with --password-stdin where the issuer allows it, or set GPUAAS_TOKEN",
            ));
        }
        None => device::sign_in(&sign_in).await?,
    };
    session.write(surroundings, &name)?;
    profiles.profiles.insert(name.clone(), profile.clone());
    profiles.current.get_or_insert_with(|| name.clone());
    profiles.write(surroundings)?;
    tell(&name, profile, profiles, client, surroundings, format).await
}

/// What was said this time is kept for the next.
fn adopt(profile: &mut Profile, args: &LoginArgs, client: &ClientArgs, surroundings: &Surroundings) {
    let keep = |field: &mut Option<String>, said: Option<String>| {
        if said.is_some() {
            *field = said;
        }
    };
    let url = client.url.clone().or_else(|| surroundings.url.clone());
    keep(&mut profile.url, url.map(|url| url.trim_end_matches('/').to_owned()));
    keep(&mut profile.project, client.project.clone().or_else(|| surroundings.project.clone()));
    keep(&mut profile.issuer, args.issuer.clone().map(|issuer| issuer.trim_end_matches('/').to_owned()));
    keep(&mut profile.client_id, args.client_id.clone());
}

/// Shows who it is to the platform. Whoever belongs to one project only need not name it from then on.
async fn tell(
    name: &str,
    mut profile: Profile,
    mut profiles: Profiles,
    args: &ClientArgs,
    surroundings: &Surroundings,
    format: Format,
) -> Result<(), Failure> {
    let args = ClientArgs { profile: Some(name.to_owned()), ..args.clone() };
    let mut client = Client::open(&args, surroundings)?;
    let me: Me = client.get("/api/v1/me", &[]).await?;
    let mut theirs = me.grants.iter().filter_map(|grant| grant.project_id);
    let meant = match (&profile.project, theirs.next(), theirs.next()) {
        (Some(_), ..) => {
            client.find_project().await?;
            Some(client.project()?.to_owned())
        }
        (None, Some(only), None) => Some(only.to_string()),
        _ => None,
    };
    if profile.project != meant {
        profile.project = meant;
        profiles.profiles.insert(name.to_owned(), profile.clone());
        profiles.write(surroundings)?;
    }
    let project = profile.project.as_deref();
    let signed_in = SignedIn { profile: name, url: profile.url(), name: &me.name, project };
    let row =
        vec![name.to_owned(), me.name.clone(), profile.url().to_owned(), project.unwrap_or("-").to_owned()];
    output::print(format, &["profile", "name", "url", "project"], &[row], &signed_in)
}

/// The first line of stdin.
fn password() -> Result<Secret<String>, Failure> {
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("cannot read the password: {error}")))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(Secret::new(line.to_owned())),
        _ => Err(Failure::usage("there is no password on stdin")),
    }
}
