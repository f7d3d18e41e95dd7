//! The stack that a node is asked to run, rendered here and now: its members as containers, and the Compose file that says
//! the same. The file is kept with the instance; what in it is secret is only named.

use std::collections::BTreeMap;

use domain::compose::{self, Facts, Service, Stack};
use domain::container;
use domain::manifest::{Renderer, RuntimeProfile};
use domain::placement::Grant;
use engine::{Call, Fault};
use node_protocol::{ComposeLaunch, Image, Port, Resources, Task, Workload};
use serde_json::Value;
use store::app_instance_artifacts::UsedArtifact;
use store::app_instances::AppInstance;

use super::launch::LaunchWorkload;
use super::probe::probe;

/// What was resolved for the launch.
pub(super) struct Resolved<'a> {
    pub(super) profile: &'a RuntimeProfile,
    pub(super) config: &'a Value,
    pub(super) grant: Grant,
    pub(super) artifacts: &'a [UsedArtifact],
    pub(super) registry: &'a str,
    /// The names of the variables that the containers are given sealed.
    pub(super) given: &'a [String],
    /// The GPUs that it is given, as an engine knows them.
    pub(super) gpus: &'a [String],
}

/// The task, and the file.
pub(super) fn launch(
    renderer: Renderer,
    instance: &AppInstance,
    launch: &LaunchWorkload,
    resolved: &Resolved<'_>,
    call: &Call,
) -> Result<(Task, Value), Fault> {
    let image = |one: &UsedArtifact| Image {
        registry: Some(resolved.registry.to_owned()),
        repository: one.repository.clone(),
        digest: one.digest.clone(),
    };
    let images: BTreeMap<String, Image> =
        resolved.artifacts.iter().map(|one| (one.name.clone(), image(one))).collect();
    let names = images.iter().map(|(name, image)| (name.clone(), image.reference())).collect();
    let facts = Facts {
        instance_id: instance.id,
        generation: launch.generation,
        profile: resolved.profile,
        config: resolved.config,
        grant: resolved.grant,
        images: &names,
        ports: &launch.placement.ports,
        gpus: resolved.gpus,
    };
    let stack = compose::render(renderer, &facts).map_err(|found| {
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        Fault::terminal("not_renderable", told.join("; "))
    })?;
    let mut given = resolved.given.to_vec();
    // The node's relay says this one.
    given.push("GPUAAS_BASE_URL".to_owned());
    let file = compose::compose_file(&stack, &given);
    let hash = compose::hash(&file);
    // The member that answers for all of them.
    let asked = probe(resolved.profile);
    let asked = asked.map(|probe| (compose::member_of(resolved.profile, Some(probe.port)), probe));
    let members = stack.services.iter().filter_map(|service| {
        let image = images.get(&service.artifact)?.clone();
        let probe = asked.as_ref().filter(|(name, _)| *name == service.name).map(|(_, probe)| probe.clone());
        Some(Workload { probe, ..member(&stack, service, image, &hash, call) })
    });
    let members = members.collect();
    Ok((Task::ComposeLaunch(ComposeLaunch { instance_id: instance.id, members }), file))
}

fn member(stack: &Stack, service: &Service, image: Image, hash: &str, call: &Call) -> Workload {
    let ports = service.ports.iter();
    Workload {
        instance_id: stack.instance_id,
        member: service.name.clone(),
        generation: stack.generation,
        correlation_id: call.correlation_id.to_string(),
        image,
        command: service.command.clone(),
        env: service.env.clone(),
        ports: ports
            .map(|port| Port { name: port.name.clone(), container: port.container, host: port.host })
            .collect(),
        resources: Resources {
            gpu_count: service.gpu_count,
            cpu_cores: service.cpu_cores,
            memory_gib: service.memory_gib,
            pids: container::PIDS,
        },
        read_only_root: service.read_only_root,
        files: BTreeMap::new(),
        scratch: service.scratch.clone(),
        shared_memory_gib: service.shared_memory_gib,
        probe: None,
        gpus: service.gpus.clone(),
        stack: Some(hash.to_owned()),
    }
}
