//! `vllm_openai`: one server that has the instance's GPUs and speaks the `OpenAI` API, and small helpers beside it where the
//! topology names any. The config becomes the server's options; where it listens the platform decides.

use std::collections::BTreeMap;

use super::{Facts, Published, Service, Stack, Unrenderable, parts};
use crate::manifest::{Mount, RuntimeProfile, Service as Part};

/// What a helper gets of the instance's share.
const HELPER_CORES: u32 = 1;
const HELPER_GIB: u32 = 1;
/// The largest part of its memory that a server's processes share.
const MOST_SHARED_GIB: u32 = 16;

pub(super) fn render(facts: &Facts<'_>) -> Result<Stack, Vec<Unrenderable>> {
    let parts = parts(facts.profile);
    let server = parts.iter().position(|part| part.gpu).unwrap_or_default();
    let mut found = Vec::new();
    if parts.iter().filter(|part| part.gpu).count() > 1 {
        found.push(wrong("/version", "its renderer gives GPUs to one service only"));
    }
    let helpers = u32::try_from(parts.len() - 1).unwrap_or(u32::MAX);
    let mut left = |name: &str, whole: u32, each: u32| {
        let left = whole.saturating_sub(each.saturating_mul(helpers));
        if left == 0 {
            found.push(wrong(&format!("/resources/{name}"), "leaves nothing for the server"));
        }
        left
    };
    let cores = left("cpu_cores", facts.grant.cpu_cores, HELPER_CORES);
    let memory = left("memory_gib", facts.grant.memory_gib, HELPER_GIB);
    let mut services = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let mut service = service(facts, part, &mut found);
        (service.cpu_cores, service.memory_gib) = (HELPER_CORES, HELPER_GIB);
        if place == server {
            (service.gpu_count, service.gpus) = (facts.grant.gpu_count, facts.gpus.to_vec());
            (service.cpu_cores, service.memory_gib) = (cores, memory);
            service.shared_memory_gib = Some((memory / 4).clamp(1, MOST_SHARED_GIB));
            serve(facts, &mut service);
        }
        services.push(service);
    }
    if !found.is_empty() {
        return Err(found);
    }
    Ok(Stack { instance_id: facts.instance_id, generation: facts.generation, services })
}

/// What every part has: its image, its ports and its folders.
fn service(facts: &Facts<'_>, part: &Part, found: &mut Vec<Unrenderable>) -> Service {
    let image = facts.images.get(&part.artifact);
    if image.is_none() {
        found.push(wrong("/version", &format!("no image `{}` was resolved", part.artifact)));
    }
    Service {
        name: part.name.clone(),
        artifact: part.artifact.clone(),
        image: image.cloned().unwrap_or_default(),
        command: None,
        env: BTreeMap::new(),
        ports: published(facts, part),
        gpu_count: 0,
        gpus: Vec::new(),
        cpu_cores: 0,
        memory_gib: 0,
        shared_memory_gib: None,
        scratch: scratch(facts, part, found),
        read_only_root: facts.profile.read_only_root,
    }
}

/// The server gets what the profile and the config say, and listens where the platform expects it.
fn serve(facts: &Facts<'_>, server: &mut Service) {
    let values = facts.profile.launch_values(facts.config);
    let mut words = values.arguments;
    if let Some(port) = server.ports.first() {
        for (option, value) in [("--host", "0.0.0.0".to_owned()), ("--port", port.container.to_string())] {
            if !words.iter().any(|word| word == option) {
                words.extend([option.to_owned(), value]);
            }
        }
    }
    server.command = (!words.is_empty()).then_some(words);
    // The account that containers run as has no home of its own.
    server.env.insert("HOME".to_owned(), "/tmp".to_owned());
    if let Some(cache) = server.scratch.first() {
        server.env.insert("HF_HOME".to_owned(), cache.clone());
    }
    let declared = facts.profile.env.iter().map(|variable| (variable.name.clone(), variable.value.clone()));
    server.env.extend(declared.chain(values.env));
}

/// Without a topology every port is the server's.
fn published(facts: &Facts<'_>, part: &Part) -> Vec<Published> {
    let profile: &RuntimeProfile = facts.profile;
    let named =
        profile.ports.iter().enumerate().map(|(place, port)| (port.endpoint_name(place), port.container));
    let host = |wanted: u16| {
        let found = named.clone().find(|(_, container)| *container == wanted);
        found.and_then(|(name, _)| facts.ports.get(&name).copied()).unwrap_or_default()
    };
    match &profile.topology {
        Some(topology) => {
            let own = topology.endpoints.iter().filter(|endpoint| endpoint.service == part.name);
            own.map(|endpoint| Published {
                name: endpoint.name.clone(),
                container: endpoint.port,
                host: host(endpoint.port),
            })
            .collect()
        }
        None => named
            .clone()
            .map(|(name, container)| Published { name, container, host: host(container) })
            .collect(),
    }
}

/// Folders without an artifact. The bytes of one do not come to nodes yet: it is left out, unless the config counts on it.
fn scratch(facts: &Facts<'_>, part: &Part, found: &mut Vec<Unrenderable>) -> Vec<String> {
    let mounts = facts.profile.topology.iter().flat_map(|topology| &topology.mounts);
    let mut folders = Vec::new();
    for mount in mounts.filter(|mount| mount.service == part.name) {
        match &mount.artifact {
            None => folders.push(mount.path.clone()),
            Some(artifact) => found.extend(counting_on(facts, mount, artifact)),
        }
    }
    folders
}

fn counting_on(facts: &Facts<'_>, mount: &Mount, artifact: &str) -> Vec<Unrenderable> {
    let fields = facts.config.as_object().into_iter().flatten();
    let counting =
        fields.filter(|(_, value)| value.as_str().is_some_and(|text| is_within(text, &mount.path)));
    let message = format!("counts on the artifact `{artifact}`, and blobs are not brought to nodes yet");
    counting.map(|(name, _)| wrong(&format!("/config/{name}"), &message)).collect()
}

/// Whether the text names the folder, or something in it.
fn is_within(text: &str, folder: &str) -> bool {
    let below = text.strip_prefix(folder.trim_end_matches('/'));
    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

fn wrong(pointer: &str, message: &str) -> Unrenderable {
    Unrenderable { pointer: pointer.to_owned(), message: message.to_owned() }
}
