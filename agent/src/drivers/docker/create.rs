//! What is asked of the engine for a workload: the one place that says how much a container may do.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, DeviceRequest, EndpointSettings, HostConfig, HostConfigLogConfig, Mount,
    NetworkingConfig, PortBinding, PortMap, RestartPolicy, RestartPolicyNameEnum,
};
use domain::container::{self, CORRELATION, DIGEST, FILES, GENERATION, INSTANCE, MEMBER, PORTS, PROBE};
use node_protocol::{Secrets, Workload};

use super::{scratch, volumes};

const GIB: i64 = 1 << 30;

/// By this NVIDIA's runtime is told which GPUs a container has. Where an engine runs everything by it, an image that says `all` would
/// have all of the machine's.
const VISIBLE_GPUS: &str = "NVIDIA_VISIBLE_DEVICES";
/// As if that runtime were not there.
const NO_GPU: &str = "void";

/// The container is on this network and no other.
pub(super) fn body(workload: &Workload, secrets: &Secrets, network: String) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(workload.image.reference()),
        cmd: workload.command.clone(),
        env: Some(env(workload, secrets)),
        user: Some(container::USER.to_owned()),
        labels: Some(labels(workload)),
        exposed_ports: Some(workload.ports.iter().map(|port| format!("{}/tcp", port.container)).collect()),
        host_config: Some(host_config(workload, network.clone())),
        networking_config: Some(networking(workload, network)),
        ..ContainerCreateBody::default()
    }
}

/// Neither the image nor the manifest has a say in which GPUs a container sees.
fn env(workload: &Workload, secrets: &Secrets) -> Vec<String> {
    let gpus = if workload.gpus.is_empty() { NO_GPU.to_owned() } else { workload.gpus.join(",") };
    let own = workload.env.iter().chain(&secrets.env).filter(|(name, _)| *name != VISIBLE_GPUS);
    let own = own.map(|(name, value)| format!("{name}={value}"));
    [format!("{VISIBLE_GPUS}={gpus}")].into_iter().chain(own).collect()
}

fn labels(workload: &Workload) -> HashMap<String, String> {
    let ports: Vec<String> =
        workload.ports.iter().map(|port| format!("{}={}", port.name, port.container)).collect();
    let mut labels = HashMap::from([
        (INSTANCE.to_owned(), workload.instance_id.to_string()),
        (MEMBER.to_owned(), workload.member.clone()),
        (GENERATION.to_owned(), workload.generation.to_string()),
        (CORRELATION.to_owned(), workload.correlation_id.clone()),
        (DIGEST.to_owned(), workload.image.digest.clone()),
        (PORTS.to_owned(), ports.join(",")),
    ]);
    let probe = workload.probe.as_ref().and_then(|probe| serde_json::to_string(probe).ok());
    labels.extend(probe.map(|probe| (PROBE.to_owned(), probe)));
    labels.extend(scratch::kept(workload).map(|kept| (FILES.to_owned(), kept)));
    labels.extend(compose_labels(workload));
    labels
}

/// By which Compose's own tools know a stack and its parts.
fn compose_labels(workload: &Workload) -> HashMap<String, String> {
    let Some(hash) = &workload.stack else { return HashMap::new() };
    let label = |name: &str, value: &str| (format!("com.docker.compose.{name}"), value.to_owned());
    HashMap::from([
        label("project", &Workload::network_name(workload.instance_id)),
        label("service", &workload.member),
        label("container-number", "1"),
        label("oneoff", "False"),
        label("config-hash", hash),
    ])
}

/// Members find each other by name, on their own network alone.
fn networking(workload: &Workload, network: String) -> NetworkingConfig {
    let named =
        EndpointSettings { aliases: Some(vec![workload.member.clone()]), ..EndpointSettings::default() };
    NetworkingConfig { endpoints_config: Some(HashMap::from([(network, named)])) }
}

fn host_config(workload: &Workload, network: String) -> HostConfig {
    let resources = workload.resources;
    let memory = i64::from(resources.memory_gib) * GIB;
    HostConfig {
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        readonly_rootfs: Some(workload.read_only_root),
        tmpfs: Some(HashMap::from([("/tmp".to_owned(), "rw,nosuid,nodev,size=256m".to_owned())])),
        mounts: mounts(workload),
        shm_size: workload.shared_memory_gib.map(|gib| i64::from(gib) * GIB),
        network_mode: Some(network),
        port_bindings: Some(bindings(workload)),
        memory: Some(memory),
        // Equal to memory: no swap.
        memory_swap: Some(memory),
        nano_cpus: Some(i64::from(resources.cpu_cores) * 1_000_000_000),
        // Somebody must pass signals on and bury the dead; few images bring a first process that does.
        init: Some(true),
        pids_limit: Some(i64::from(resources.pids)),
        device_requests: gpus(&workload.gpus),
        log_config: Some(HostConfigLogConfig {
            typ: Some("json-file".to_owned()),
            config: Some(HashMap::from([
                ("max-size".to_owned(), "10m".to_owned()),
                ("max-file".to_owned(), "3".to_owned()),
            ])),
        }),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::UNLESS_STOPPED),
            maximum_retry_count: None,
        }),
        ..HostConfig::default()
    }
}

fn mounts(workload: &Workload) -> Option<Vec<Mount>> {
    let all: Vec<Mount> = scratch::mount(workload).into_iter().chain(volumes::mounts(workload)).collect();
    (!all.is_empty()).then_some(all)
}

fn bindings(workload: &Workload) -> PortMap {
    let bound =
        |host: u16| PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some(host.to_string()) };
    let ports = workload.ports.iter();
    ports.map(|port| (format!("{}/tcp", port.container), Some(vec![bound(port.host)]))).collect()
}

/// Those and no others: asked for by their number alone, an engine would give everybody the first ones.
fn gpus(named: &[String]) -> Option<Vec<DeviceRequest>> {
    (!named.is_empty()).then(|| {
        vec![DeviceRequest {
            driver: Some("nvidia".to_owned()),
            device_ids: Some(named.to_vec()),
            capabilities: Some(vec![vec!["gpu".to_owned()]]),
            ..DeviceRequest::default()
        }]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Stage;
    use uuid::Uuid;

    fn asked(gpus: &[&str]) -> ContainerCreateBody {
        let stage = Stage { digest: format!("sha256:{}", "a".repeat(64)), port: 8080 };
        let mut workload = stage.workload(Uuid::nil(), 3);
        workload.gpus = gpus.iter().map(|gpu| (*gpu).to_owned()).collect();
        workload.resources.gpu_count = 2;
        on_network(&workload)
    }

    fn on_network(workload: &Workload) -> ContainerCreateBody {
        body(workload, &Secrets::default(), "its-own".to_owned())
    }

    #[test]
    fn a_container_may_do_as_little_as_possible() {
        let host = asked(&[]).host_config.unwrap();
        assert_eq!(host.privileged, Some(false));
        assert_eq!(host.cap_drop.as_deref(), Some(&["ALL".to_owned()][..]));
        assert_eq!(host.security_opt.as_deref(), Some(&["no-new-privileges".to_owned()][..]));
        assert_eq!((host.binds, host.mounts, host.devices, host.cap_add), (None, None, None, None));
        assert_eq!(host.memory, host.memory_swap);
        assert_eq!(host.pids_limit, Some(64));
        assert_eq!(host.nano_cpus, Some(1_000_000_000));
        assert_eq!(host.readonly_rootfs, Some(true));
    }

    #[test]
    fn of_the_host_a_container_sees_the_files_it_was_given_and_cannot_change_them() {
        let stage = Stage { digest: format!("sha256:{}", "a".repeat(64)), port: 8080 };
        let mut workload = stage.workload(Uuid::nil(), 3);
        workload.files.insert(Workload::PACKAGES.to_owned(), "[]".to_owned());
        let mounts = on_network(&workload).host_config.unwrap().mounts.unwrap();
        let [mount] = mounts.as_slice() else { panic!("{mounts:?}") };
        assert_eq!((mount.target.as_deref(), mount.read_only), (Some("/run/gpuaas"), Some(true)));
        let own = format!("/dev/shm/gpuaas/{}", workload.container_name());
        assert_eq!(mount.source.as_deref(), Some(own.as_str()));
    }

    #[test]
    fn a_member_of_a_stack_is_known_to_compose_and_has_folders_of_its_own() {
        let stage = Stage { digest: format!("sha256:{}", "a".repeat(64)), port: 8080 };
        let mut workload = stage.workload(Uuid::nil(), 3);
        assert!(asked(&[]).labels.unwrap().keys().all(|name| !name.starts_with("com.docker.compose")));
        (workload.member, workload.stack) = ("server".to_owned(), Some("hash".to_owned()));
        (workload.scratch, workload.shared_memory_gib) = (vec!["/cache".to_owned()], Some(2));
        let asked = on_network(&workload);
        let labels = asked.labels.unwrap();
        assert_eq!(labels["com.docker.compose.project"], Workload::network_name(Uuid::nil()));
        assert_eq!(labels["com.docker.compose.service"], "server");
        let host = asked.host_config.unwrap();
        assert_eq!(host.network_mode.as_deref(), Some("its-own"));
        assert_eq!(host.shm_size, Some(2 * GIB));
        let mounts = host.mounts.unwrap();
        let [mount] = mounts.as_slice() else { panic!("{mounts:?}") };
        assert_eq!(
            (mount.typ, mount.target.as_deref()),
            (Some(bollard::models::MountType::VOLUME), Some("/cache"))
        );
        let endpoints = asked.networking_config.unwrap().endpoints_config.unwrap();
        assert_eq!(endpoints["its-own"].aliases, Some(vec!["server".to_owned()]));
    }

    #[test]
    fn ports_are_bound_to_loopback_alone() {
        let ports = asked(&[]).host_config.unwrap().port_bindings.unwrap();
        let bound = ports["8080/tcp"].as_ref().unwrap();
        assert!(bound.iter().all(|port| port.host_ip.as_deref() == Some("127.0.0.1")));
    }

    #[test]
    fn gpus_are_asked_for_by_name_and_without_one_none_is() {
        assert_eq!(asked(&[]).host_config.unwrap().device_requests, None, "as where they are simulated");
        let request = asked(&["GPU-5a", "3"]).host_config.unwrap().device_requests.unwrap().remove(0);
        assert_eq!((request.count, request.driver.as_deref()), (None, Some("nvidia")));
        assert_eq!(request.device_ids, Some(vec!["GPU-5a".to_owned(), "3".to_owned()]));
    }

    #[test]
    fn a_container_sees_the_gpus_it_was_given_whatever_its_variables_say() {
        let stage = Stage { digest: format!("sha256:{}", "a".repeat(64)), port: 8080 };
        let mut workload = stage.workload(Uuid::nil(), 3);
        workload.env =
            [(VISIBLE_GPUS.to_owned(), "all".to_owned()), ("OWN".to_owned(), "1".to_owned())].into();
        let env = |workload: &Workload| on_network(workload).env.unwrap();
        assert_eq!(env(&workload), ["NVIDIA_VISIBLE_DEVICES=void", "OWN=1"]);
        workload.gpus = vec!["GPU-5a".to_owned(), "3".to_owned()];
        assert_eq!(env(&workload), ["NVIDIA_VISIBLE_DEVICES=GPU-5a,3", "OWN=1"]);
    }
}
