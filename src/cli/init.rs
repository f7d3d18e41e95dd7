//! `gpuaas init`: a manifest to begin with, in words, that `gpuaas validate` accepts as it is.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use domain::manifest::{self, Rejected};
use serde::Serialize;

use super::ClientArgs;
use super::output::{self, Format};
use crate::failure::Failure;

const STARTER: &str = include_str!("init/manifest.yaml");

#[derive(Debug, Args)]
pub struct InitArgs {
    /// Where to write it
    #[arg(default_value = "manifest.yaml")]
    file: PathBuf,
    /// The app's slug [default: the name of the folder]
    #[arg(long)]
    slug: Option<String>,
    /// The port that the app listens on
    #[arg(long)]
    port: Option<u16>,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct Made {
    file: PathBuf,
    app_slug: String,
    version: String,
}

pub fn run(args: &InitArgs, client: &ClientArgs, format: Format) -> Result<(), Failure> {
    let asks = !client.no_input && io::stdin().is_terminal() && io::stderr().is_terminal();
    let slug = match &args.slug {
        Some(slug) => slug.clone(),
        None => answer(asks, "the app's slug", folder_name(&args.file))?,
    };
    let port = match args.port {
        Some(port) => port.to_string(),
        None => answer(asks, "the port that it listens on", "8080".to_owned())?,
    };
    let text = STARTER.replace("SLUG", &slug).replace("NAME", &spoken(&slug)).replace("PORT", &port);
    let accepted = manifest::read(&text, manifest::Format::Yaml).map_err(refused)?;
    write(&args.file, &text, args.force)?;
    let file = args.file.display().to_string();
    let made =
        Made { file: args.file.clone(), app_slug: slug.clone(), version: accepted.manifest.version.version };
    let row = vec![file.clone(), slug, made.version.clone()];
    output::print(format, &["file", "app", "version"], &[row], &made)?;
    if format == Format::Table {
        output::say(&format!("read it, change it, then check it: gpuaas validate {file}"));
    }
    Ok(())
}

/// What somebody types, or the default where they type nothing or nobody is there.
fn answer(asks: bool, question: &str, default: String) -> Result<String, Failure> {
    if !asks {
        return Ok(default);
    }
    output::ask(&format!("{question} [{default}] "));
    let mut text = String::new();
    io::stdin()
        .read_line(&mut text)
        .map_err(|error| Failure::usage(format!("cannot read the answer: {error}")))?;
    Ok(if text.trim().is_empty() { default } else { text.trim().to_owned() })
}

/// The folder's name as far as it is one for an app.
fn folder_name(file: &Path) -> String {
    let folder = std::path::absolute(file).ok();
    let folder = folder.as_deref().and_then(Path::parent).and_then(Path::file_name);
    let name = folder.map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let name = name.trim_matches('-');
    if name.len() < 2 { "my-app".to_owned() } else { name.chars().take(63).collect() }
}

/// `my-app` as a heading.
fn spoken(slug: &str) -> String {
    let words = slug.replace('-', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn refused(rejected: Rejected) -> Failure {
    let problems = rejected.problems.iter().map(|problem| format!("{} {}", problem.pointer, problem.message));
    Failure::usage(format!("that makes no manifest:\n{}", problems.collect::<Vec<String>>().join("\n")))
}

fn write(file: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(!force).create(true).truncate(force);
    let written = options.open(file).and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::conflict(format!("{} is there already: --force writes over it", file.display()))
        }
        _ => Failure::usage(format!("{}: {error}", file.display())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_s_name_becomes_a_slug() {
        assert_eq!(folder_name(Path::new("/home/somebody/My App/manifest.yaml")), "my-app");
        assert_eq!(folder_name(Path::new("/manifest.yaml")), "my-app");
        assert_eq!(spoken("my-app"), "My app");
    }
}
