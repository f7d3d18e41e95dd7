//! `gpuaas apps`: what the project may deploy, or the whole catalog; and one app with its versions and what it needs.

use std::collections::HashSet;
use std::fmt::Write;

use api_types::{AppVersion, CatalogApp, EffectiveEntitlement};
use clap::Args;
use domain::explanation::{Explanation, Parameter};
use domain::manifest::Amount;
use serde::Serialize;
use serde_json::Value;

use super::client::{Client, escaped};
use super::output::{self, Format};
use super::workflows::word;
use crate::failure::Failure;

#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
pub struct AppsArgs {
    /// One app's slug: its versions, and what one of them needs
    #[arg(value_name = "APP")]
    app: Option<String>,
    /// Apps that the project may not deploy, too
    #[arg(long, short, conflicts_with = "app")]
    all: bool,
    /// The version to explain [default: the newest that the project may deploy]
    #[arg(long, requires = "app")]
    version: Option<String>,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    app: CatalogApp,
    entitled: bool,
    versions: Vec<AppVersion>,
    /// Of the version asked for, or else the one on offer.
    explanation: Option<Explanation>,
}

pub async fn run(args: &AppsArgs, client: &Client, format: Format) -> Result<(), Failure> {
    match &args.app {
        Some(slug) => show(client, slug, args.version.as_deref(), format).await,
        None => list(client, args.all, format).await,
    }
}

async fn list(client: &Client, all: bool, format: Format) -> Result<(), Failure> {
    let project = ("project_id", client.project()?.to_owned());
    let entitled = [project.clone(), ("entitled", "true".to_owned())];
    let entitled: Vec<CatalogApp> = client.list("/api/v1/apps/catalog", &entitled).await?;
    let mine: HashSet<String> = entitled.iter().map(|app| app.slug.clone()).collect();
    let apps = if all { client.list("/api/v1/apps/catalog", &[project]).await? } else { entitled };
    let row = |app: &CatalogApp| {
        let offered = app.offered_version.clone().filter(|_| mine.contains(&app.slug));
        vec![
            app.slug.clone(),
            offered.unwrap_or_else(|| "not entitled".to_owned()),
            app.category.clone().unwrap_or_else(|| "-".to_owned()),
            app.runtime_backend.clone(),
            app.description.clone().unwrap_or_else(|| app.display_name.clone()),
        ]
    };
    let rows: Vec<Vec<String>> = apps.iter().map(row).collect();
    output::print(format, &["app", "offered", "category", "backend", "description"], &rows, &apps)?;
    if apps.is_empty() && format == Format::Table {
        output::say("the project may deploy nothing; `gpuaas apps --all` shows the catalog");
    }
    Ok(())
}

async fn show(client: &Client, slug: &str, version: Option<&str>, format: Format) -> Result<(), Failure> {
    let path = format!("/api/v1/apps/catalog/{}", escaped(slug));
    let app: CatalogApp = client.get(&path, &[("project_id", client.project()?.to_owned())]).await?;
    let versions: Vec<AppVersion> = client.list(&format!("{path}/versions"), &[]).await?;
    let explained = version.or(app.offered_version.as_deref()).or(app.newest_version.as_deref());
    let explanation: Option<Explanation> = match explained {
        Some(version) => {
            Some(client.get(&format!("{path}/versions/{}/explain", escaped(version)), &[]).await?)
        }
        None => None,
    };
    let effective = client.in_project(&format!("/apps/entitlements/{}/effective", escaped(slug)))?;
    let effective: EffectiveEntitlement = client.get(&effective, &[]).await?;
    let shown = Shown { app, entitled: effective.enabled, versions, explanation };
    match format {
        Format::Table | Format::Csv => output::text(&picture(&shown)),
        Format::Name => output::text(&format!("{slug}\n")),
        Format::Json | Format::Yaml => output::data(format, &shown),
    }
}

fn picture(shown: &Shown) -> String {
    let Shown { app, entitled, versions, explanation } = shown;
    let mut text = format!("{} ({})\n", app.display_name, app.slug);
    if let Some(description) = &app.description {
        let _ = writeln!(text, "{description}");
    }
    let deployable = match (&app.offered_version, entitled) {
        (_, false) => {
            format!("your project may not use it: a project admin runs `gpuaas entitle {}`", app.slug)
        }
        (None, true) => "no version of it is rolled out to your project yet".to_owned(),
        (Some(version), true) => format!("your project may deploy {version}: gpuaas up {}", app.slug),
    };
    let _ = writeln!(text, "{deployable}");
    let rows: Vec<Vec<String>> = versions.iter().rev().map(version_row).collect();
    let _ = write!(text, "\n{}", output::table(&["version", "status", "registered", "digest"], &rows));
    if let Some(explanation) = explanation {
        explain(&mut text, explanation);
    }
    text
}

fn version_row(version: &AppVersion) -> Vec<String> {
    vec![
        version.version.clone(),
        word(&version.status),
        version.created_at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        version.content_digest.clone(),
    ]
}

fn explain(text: &mut String, explanation: &Explanation) {
    let needs = &explanation.needs;
    let _ = writeln!(text, "\n{} {} needs and gives", explanation.app_slug, explanation.version);
    for (name, amount) in
        [("GPUs", needs.gpu_count), ("cores", needs.cpu_cores), ("memory in GiB", needs.memory_gib)]
    {
        if let Some(amount) = amount {
            let _ = writeln!(text, "  {name:14}  {}", bounds(amount));
        }
    }
    if !needs.accelerators.is_empty() {
        let _ = writeln!(text, "  {:14}  {}", "accelerators", needs.accelerators.join(" or "));
    }
    if !needs.capacity_shapes.is_empty() {
        let shapes: Vec<&str> = needs.capacity_shapes.iter().map(|shape| shape.as_str()).collect();
        let _ = writeln!(text, "  {:14}  {}", "allocation", shapes.join(" or "));
    }
    for port in &explanation.ports {
        let _ =
            writeln!(text, "  {:14}  {} on {}, {}", "port", port.name, port.container, word(&port.expose));
    }
    for need in &explanation.credentials {
        let must = if need.required { "required" } else { "optional" };
        let _ = writeln!(text, "  {:14}  {} ({must}) in {}", "credential", need.class, need.env);
    }
    if let Some(metering) = &explanation.price.metering {
        let _ = writeln!(text, "  {:14}  {}", "metered by", word(metering));
    }
    if !explanation.parameters.is_empty() {
        let rows: Vec<Vec<String>> = explanation.parameters.iter().map(parameter_row).collect();
        let _ = write!(text, "\n{}", output::table(&["config", "type", "default", "description"], &rows));
    }
}

fn bounds(amount: Amount) -> String {
    let most = amount.max.map_or_else(|| "any number".to_owned(), |most| most.to_string());
    format!("{}, from {} to {most}", amount.default, amount.min)
}

fn parameter_row(parameter: &Parameter) -> Vec<String> {
    let kind = match (&parameter.choices, &parameter.kind) {
        (Some(choices), _) => choices.iter().map(bare).collect::<Vec<String>>().join("|"),
        (None, Value::Null) => "any".to_owned(),
        (None, kind) => bare(kind),
    };
    let default = match (&parameter.default, parameter.required) {
        (Some(default), _) => default.to_string(),
        (None, true) => "required".to_owned(),
        (None, false) => "-".to_owned(),
    };
    vec![parameter.name.clone(), kind, default, parameter.description.clone().unwrap_or_default()]
}

/// A text without its quotes.
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
