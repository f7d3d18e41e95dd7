//! A stack as a Compose file: what `docker compose` would read to run the same containers, with the same limits, on the same
//! network. Secrets are variables that whoever runs it must bring; none is ever written.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{Service, Stack};
use crate::Digest;
use crate::container;
use crate::redact::{REDACTED, is_secret, redacted};

/// `given` are the names of the variables that containers get besides their own.
pub fn compose_file(stack: &Stack, given: &[String]) -> Value {
    let services: BTreeMap<&str, Value> =
        stack.services.iter().map(|one| (one.name.as_str(), service(stack, one, given))).collect();
    let labels = json!({ container::INSTANCE: stack.instance_id });
    let volumes: Map<String, Value> = stack
        .services
        .iter()
        .flat_map(|one| (0..one.scratch.len()).map(move |place| (one, place)))
        .map(|(one, place)| {
            let name = container::volume_name(stack.instance_id, &one.name, place);
            (volume(one, place), json!({ "name": name, "labels": labels }))
        })
        .collect();
    let name = container::network_name(stack.instance_id);
    let mut file = json!({
        "name": name,
        "services": services,
        "networks": { "default": { "name": name, "driver": "bridge", "labels": labels } },
    });
    if !volumes.is_empty() {
        file["volumes"] = Value::Object(volumes);
    }
    file
}

/// By which Compose tells whether a container is still as its file says.
pub fn hash(file: &Value) -> String {
    Digest::from_sha256(Sha256::digest(file.to_string()).into()).hex().to_owned()
}

/// As callers see it: what a name says is secret is hidden, in variables and behind options.
pub fn shown(file: Value) -> Value {
    let mut file = redacted(file);
    for service in file["services"].as_object_mut().into_iter().flat_map(|services| services.values_mut()) {
        let Some(words) = service["command"].as_array_mut() else { continue };
        let mut hide = false;
        for word in words {
            let text = word.as_str().unwrap_or_default().to_owned();
            if hide {
                *word = json!(REDACTED);
            }
            hide = text.starts_with('-') && is_secret(&text);
        }
    }
    file
}

fn service(stack: &Stack, one: &Service, given: &[String]) -> Value {
    let memory = format!("{}g", one.memory_gib);
    let mut shown = json!({
        "image": one.image,
        "container_name": container::container_name(stack.instance_id, &one.name, stack.generation),
        "environment": environment(one, given),
        "user": container::USER,
        "init": true,
        "restart": "unless-stopped",
        "read_only": one.read_only_root,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "tmpfs": ["/tmp:rw,nosuid,nodev,size=256m"],
        "memswap_limit": memory,
        "deploy": { "resources": { "limits": {
            "cpus": one.cpu_cores.to_string(), "memory": memory, "pids": container::PIDS,
        } } },
        "networks": { "default": { "aliases": [one.name] } },
        "labels": {
            container::INSTANCE: stack.instance_id, container::MEMBER: one.name,
            container::GENERATION: stack.generation.to_string(),
        },
        "logging": { "driver": "json-file", "options": { "max-size": "10m", "max-file": "3" } },
    });
    if let Some(command) = &one.command {
        // A dollar sign in a word is the word's own, not the name of a variable.
        shown["command"] = command.iter().map(|word| word.replace('$', "$$")).collect();
    }
    if let Some(gib) = one.shared_memory_gib {
        shown["shm_size"] = json!(format!("{gib}g"));
    }
    if !one.gpus.is_empty() {
        shown["deploy"]["resources"]["reservations"] = json!({
            "devices": [{ "driver": "nvidia", "device_ids": one.gpus, "capabilities": ["gpu"] }],
        });
    }
    if !one.ports.is_empty() {
        let ports = one.ports.iter().map(|port| {
            json!({
                "name": port.name, "target": port.container, "published": port.host.to_string(),
                "host_ip": "127.0.0.1", "protocol": "tcp",
            })
        });
        shown["ports"] = ports.collect();
    }
    if !one.scratch.is_empty() {
        let volumes =
            one.scratch.iter().enumerate().map(
                |(place, path)| json!({ "type": "volume", "source": volume(one, place), "target": path }),
            );
        shown["volumes"] = volumes.collect();
    }
    shown
}

fn environment(one: &Service, given: &[String]) -> Map<String, Value> {
    let own = one.env.iter().map(|(name, value)| (name.clone(), json!(value.replace('$', "$$"))));
    let brought = given.iter().map(|name| (name.clone(), json!(format!("${{{name}:?}}"))));
    own.chain(brought).collect()
}

fn volume(one: &Service, place: usize) -> String {
    format!("{}-{place}", one.name)
}
