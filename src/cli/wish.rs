//! What somebody asks for when they deploy an app: the flags that `gpuaas up` and `gpuaas plan` share, and the request they
//! become.

use std::collections::BTreeMap;
use std::fs;

use api_types::{AppInstance, CatalogApp, NewAppInstance, WantedResources};
use clap::Args;
use domain::explanation::{Explanation, Parameter};
use domain::manifest;
use domain::{ControlPlaneScope, OperatingMode};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::client::{Client, escaped};
use super::pick;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct Wish {
    /// The version [default: the newest that the project may deploy]
    #[arg(long)]
    pub version: Option<String>,
    /// What people call the instance [default: the app's slug, with a number where that is taken]
    #[arg(long)]
    pub name: Option<String>,
    /// A value of its configuration, or a whole file of them in YAML or JSON; may be repeated
    #[arg(long, value_name = "KEY=VALUE|@FILE")]
    pub config: Vec<String>,
    /// GPUs; what the version gives, unless said
    #[arg(long, value_name = "N")]
    pub gpus: Option<u32>,
    /// Cores
    #[arg(long, value_name = "N")]
    pub cpus: Option<u32>,
    /// Memory in GiB
    #[arg(long, value_name = "GIB")]
    pub memory: Option<u32>,
    /// The node's port for the app's first port [default: a free one]
    #[arg(long)]
    pub port: Option<u16>,
    /// The allocation to stand on, by its id or the beginning of it [default: the first that fits]
    #[arg(long, value_name = "ID")]
    pub allocation: Option<String>,
    /// `tenant_dedicated` or `platform_managed` [default: the first that the project's policy allows]
    #[arg(long)]
    pub mode: Option<OperatingMode>,
    /// Whom its control plane serves: project, tenant or platform
    #[arg(long)]
    pub scope: Option<ControlPlaneScope>,
    /// One of the version's images [default: the one that fits the accelerator]
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// An artifact of this very version to run instead of its own, by its id, its digest or the beginning of either
    #[arg(long, value_name = "ID|DIGEST")]
    pub artifact: Option<String>,
    /// A package beside the version's own, such as numpy==2.1; may be repeated
    #[arg(long = "package", value_name = "SPECIFIER")]
    pub packages: Vec<String>,
    /// The project's credential for one of the version's classes, by its name or its id; may be repeated
    #[arg(long = "credential", value_name = "CLASS=NAME|ID", value_parser = credential)]
    pub credentials: Vec<(String, String)>,
}

impl Wish {
    /// As the platform is asked for it.
    pub async fn of(&self, client: &Client, slug: &str) -> Result<NewAppInstance, Failure> {
        let version = match &self.version {
            Some(version) => version.clone(),
            None => offered(client, slug).await?,
        };
        let allocation = match &self.allocation {
            Some(text) => Some(pick::allocation(client, text).await?),
            None => None,
        };
        let display_name = match &self.name {
            Some(name) => name.clone(),
            None => free_name(client, slug).await?,
        };
        Ok(NewAppInstance {
            config: self.configuration(client, slug, &version).await?,
            app_slug: slug.to_owned(),
            version,
            display_name,
            operating_mode: self.mode,
            control_plane_scope: self.scope,
            placement_intent: allocation.map(|id| Map::from_iter([("allocation_id".to_owned(), json!(id))])),
            resources: self.resources(),
            variant: self.variant.clone(),
            artifact_id: self.artifact(client, slug).await?,
            packages: self.packages.clone(),
            credentials: self.credentials(client).await?,
        })
    }

    pub async fn artifact(&self, client: &Client, slug: &str) -> Result<Option<Uuid>, Failure> {
        match &self.artifact {
            Some(text) => pick::artifact(client, slug, text).await.map(Some),
            None => Ok(None),
        }
    }

    async fn credentials(&self, client: &Client) -> Result<BTreeMap<String, Uuid>, Failure> {
        let mut found = BTreeMap::new();
        for (class, text) in &self.credentials {
            found.insert(class.clone(), pick::credential(client, text).await?);
        }
        Ok(found)
    }

    fn resources(&self) -> Option<WantedResources> {
        let wanted = WantedResources {
            gpu_count: self.gpus,
            cpu_cores: self.cpus,
            memory_gib: self.memory,
            host_port: self.port,
        };
        (wanted != WantedResources::default()).then_some(wanted)
    }

    async fn configuration(
        &self,
        client: &Client,
        slug: &str,
        version: &str,
    ) -> Result<Option<Map<String, Value>>, Failure> {
        if self.config.is_empty() {
            return Ok(None);
        }
        let path = format!("/api/v1/apps/catalog/{}/versions/{}/explain", escaped(slug), escaped(version));
        let explained: Explanation = client.get(&path, &[]).await?;
        let mut config = Map::new();
        for said in &self.config {
            match (said.strip_prefix('@'), said.split_once('=')) {
                (Some(file), _) => config.extend(read(file)?),
                (None, Some((key, text))) => {
                    let parameter = explained.parameters.iter().find(|parameter| parameter.name == key);
                    config.insert(key.to_owned(), meant(parameter, text));
                }
                (None, None) => {
                    return Err(Failure::usage(format!("--config {said}: write it as key=value or @file")));
                }
            }
        }
        Ok(Some(config))
    }
}

fn credential(said: &str) -> Result<(String, String), String> {
    let (class, which) = said.split_once('=').ok_or("write it as class=id or class=name")?;
    Ok((class.to_owned(), which.to_owned()))
}

/// The newest version that the project may deploy.
pub async fn offered(client: &Client, slug: &str) -> Result<String, Failure> {
    let query = [("project_id", client.project()?.to_owned())];
    let app: CatalogApp = client.get(&format!("/api/v1/apps/catalog/{}", escaped(slug)), &query).await?;
    app.offered_version.ok_or_else(|| {
        Failure::auth(match app.active_version {
            Some(_) => {
                format!("the project is not entitled to {slug}: a project admin runs `gpuaas entitle {slug}`")
            }
            None => format!("no version of {slug} is rolled out yet: `gpuaas apps {slug}` lists them"),
        })
    })
}

/// People tell instances apart by their names, so the default is one that nobody bears.
async fn free_name(client: &Client, slug: &str) -> Result<String, Failure> {
    let path = client.in_project("/app-instances")?;
    let query = [("status", pick::here()), ("order", "newest".to_owned()), ("app", slug.to_owned())];
    let own: Vec<AppInstance> = client.list(&path, &query).await?;
    let taken = |name: &String| own.iter().any(|instance| instance.display_name == *name);
    let mut names = std::iter::once(slug.to_owned()).chain((2..).map(|number| format!("{slug}-{number}")));
    Ok(names.find(|name| !taken(name)).unwrap_or_else(|| slug.to_owned()))
}

fn read(file: &str) -> Result<Map<String, Value>, Failure> {
    let failed = |why: String| Failure::usage(format!("{file}: {why}"));
    let text = fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    let format = if file.ends_with(".json") { manifest::Format::Json } else { manifest::Format::Yaml };
    match manifest::value(&text, format) {
        Ok(Value::Object(config)) => Ok(config),
        Ok(_) => Err(failed("is not an object of keys and values".to_owned())),
        Err(problem) => Err(failed(format!("line {}: {}", problem.line.unwrap_or(1), problem.message))),
    }
}

/// A text where the schema asks for one; else whatever the words are as JSON.
fn meant(parameter: Option<&Parameter>, text: &str) -> Value {
    if parameter.is_some_and(|parameter| parameter.kind == "string") {
        return Value::String(text.to_owned());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_the_schema_says_they_are() {
        let parameter = |kind: &str| Parameter {
            name: "x".to_owned(),
            kind: json!(kind),
            required: false,
            default: None,
            choices: None,
            description: None,
        };
        assert_eq!(meant(Some(&parameter("string")), "7"), json!("7"));
        assert_eq!(meant(Some(&parameter("integer")), "7"), json!(7));
        assert_eq!(meant(Some(&parameter("array")), "[1,2]"), json!([1, 2]));
        assert_eq!(meant(None, "true"), json!(true));
        assert_eq!(meant(None, "two words"), json!("two words"));
    }
}
