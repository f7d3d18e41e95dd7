//! What a node is asked to run: what the version declares, the config filled in, by digest, within what the instance was
//! given. One container, or a stack of them.

use std::collections::BTreeMap;

use domain::container::PIDS;
use domain::manifest::RuntimeProfile;
use domain::placement::Grant;
use engine::{Call, Fault};
use node_protocol::{Gpu, Image, Inventory, OciLaunch, Port, Resources, Task, Workload};
use serde_json::Value;
use sqlx::PgConnection;
use store::app_instance_artifacts::{self, Standing};
use store::app_instances::AppInstance;
use store::{app_instance_releases, deployment, nodes};

use super::launch::LaunchWorkload;
use super::probe::probe;
use super::reserve::Placement;
use super::stack::{self, Resolved};
use super::unreadable;
use crate::Env;

/// The task, and the Compose file where it is a stack's. `given` are the names of the variables that come sealed.
pub(super) async fn launch(
    conn: &mut PgConnection,
    env: &Env,
    instance: &AppInstance,
    launch: &LaunchWorkload,
    given: &[String],
    call: &Call,
) -> Result<(Task, Option<Value>), Fault> {
    let missing = |what: &str| unreadable(&format!("no {what} was resolved for the instance"));
    let release = app_instance_releases::find(conn, instance.id, Standing::Target).await?;
    let release = release.ok_or_else(|| missing("release"))?;
    let profile: RuntimeProfile =
        serde_json::from_value(release.profile).map_err(|error| unreadable(&error))?;
    let grant: Grant = serde_json::from_value(release.resources).map_err(|error| unreadable(&error))?;
    let artifacts = app_instance_artifacts::of(conn, instance.id, Standing::Target).await?;
    let registry = env.registry()?.host.clone();
    let gpus = gpus(conn, &launch.placement).await?;
    if let Some(renderer) = profile.renderer {
        let resolved = Resolved {
            profile: &profile,
            config: &release.config,
            grant,
            artifacts: &artifacts,
            registry: &registry,
            given,
            gpus: &gpus,
        };
        let (task, file) = stack::launch(renderer, instance, launch, &resolved, call)?;
        return Ok((task, Some(file)));
    }
    let image = deployment::runtime(&artifacts).ok_or_else(|| missing("image"))?.clone();
    let config = profile.launch_values(&release.config);
    let own = profile.env.iter().map(|variable| (variable.name.clone(), variable.value.clone()));
    let workload = Workload {
        instance_id: instance.id,
        member: Workload::MAIN.to_owned(),
        generation: launch.generation,
        correlation_id: call.correlation_id.to_string(),
        image: Image { registry: Some(registry), repository: image.repository, digest: image.digest },
        command: command(&profile, config.arguments),
        env: own.chain(config.env).collect(),
        ports: ports(&profile, &launch.placement.ports),
        resources: Resources {
            gpu_count: grant.gpu_count,
            cpu_cores: grant.cpu_cores,
            memory_gib: grant.memory_gib,
            pids: PIDS,
        },
        read_only_root: profile.read_only_root,
        files: files(&profile, instance)?,
        scratch: Vec::new(),
        shared_memory_gib: None,
        probe: probe(&profile),
        gpus,
        stack: None,
    };
    Ok((Task::OciLaunch(Box::new(OciLaunch { workload })), None))
}

/// The profile's words, then those of the config; the image's own command where there are neither.
fn command(profile: &RuntimeProfile, arguments: Vec<String>) -> Option<Vec<String>> {
    let words: Vec<String> = profile.command.iter().cloned().chain(arguments).collect();
    (!words.is_empty()).then_some(words)
}

/// The version's packages, then those of the launch. They are data to whoever installs them, and pass through no shell.
fn files(profile: &RuntimeProfile, instance: &AppInstance) -> Result<BTreeMap<String, String>, Fault> {
    let Some(own) = &profile.packages else { return Ok(BTreeMap::new()) };
    let added: Vec<String> =
        serde_json::from_value(instance.packages.clone()).map_err(|error| unreadable(&error))?;
    let all: Vec<&String> = own.iter().chain(&added).collect();
    let text = serde_json::to_string(&all).map_err(|error| unreadable(&error))?;
    Ok(BTreeMap::from([(Workload::PACKAGES.to_owned(), text)]))
}

/// The GPUs of the placement as an engine knows them. Those that are only simulated nobody can be given.
async fn gpus(conn: &mut PgConnection, placement: &Placement) -> Result<Vec<String>, Fault> {
    if placement.gpus.is_empty() {
        return Ok(Vec::new());
    }
    let node = nodes::find(conn, placement.node_id).await?.and_then(|node| node.inventory);
    let inventory: Inventory =
        serde_json::from_value(node.unwrap_or_default()).map_err(|error| unreadable(&error))?;
    let given = |gpu: &&Gpu| placement.gpus.iter().any(|index| i64::from(*index) == i64::from(gpu.index));
    Ok(inventory.gpus.iter().filter(given).filter(|gpu| !gpu.simulated).map(Gpu::device).collect())
}

fn ports(profile: &RuntimeProfile, host: &BTreeMap<String, u16>) -> Vec<Port> {
    let ports = profile.ports.iter().enumerate().map(|(place, port)| {
        let name = port.endpoint_name(place);
        let host = host.get(&name).copied().unwrap_or_default();
        Port { name, container: port.container, host }
    });
    ports.collect()
}
