//! What no manifest may ask for. Apps of several tenants share nodes, so the ways out of a container are closed for all
//! of them; whoever asks is told which rule stands in the way and not only that the field is unknown.

use crate::manifest::author::Author;
use crate::manifest::check::Findings;
use crate::manifest::spot::Spot;

const PRIVILEGES: &str =
    "is refused: containers run unprivileged, with all capabilities dropped, because nodes are shared";
const NETWORK: &str =
    "is refused: every instance has a network of its own, and its ports are reached through the platform";
const HOST: &str = "is refused: containers share no namespaces, devices or folders with their host, because nodes are shared";
const TAGS: &str = "is refused: images run by digest only, because a tag can change after review; publish the image and let `artifacts` name it";
const COMPOSE: &str =
    "is refused: the platform renders Compose files itself; name a `renderer` and describe the `topology`";

/// Fields that other platforms have, and why this one does not.
const REFUSED: &[(&str, &str)] = &[
    ("privileged", PRIVILEGES),
    ("allow_privilege_escalation", PRIVILEGES),
    ("cap_add", PRIVILEGES),
    ("capabilities", PRIVILEGES),
    ("security_opt", PRIVILEGES),
    ("seccomp", PRIVILEGES),
    ("apparmor", PRIVILEGES),
    ("sysctls", PRIVILEGES),
    ("host_network", NETWORK),
    ("hostNetwork", NETWORK),
    ("network_mode", NETWORK),
    ("network", NETWORK),
    ("networks", NETWORK),
    ("extra_hosts", NETWORK),
    ("host_pid", HOST),
    ("host_ipc", HOST),
    ("pid", HOST),
    ("ipc", HOST),
    ("userns_mode", HOST),
    ("devices", HOST),
    ("volumes", HOST),
    ("binds", HOST),
    ("host_mounts", HOST),
    ("host_path", HOST),
    ("host_paths", HOST),
    ("hostPath", HOST),
    ("image", TAGS),
    ("tag", TAGS),
    ("tags", TAGS),
    ("image_tag", TAGS),
    ("compose", COMPOSE),
    ("compose_file", COMPOSE),
    ("compose_yaml", COMPOSE),
    ("docker_compose", COMPOSE),
];

/// Sockets of container engines: whoever reaches one owns the node.
const SOCKETS: &[&str] = &["docker.sock", "containerd.sock", "crio.sock", "podman.sock"];

pub(super) fn check(author: &Author<'_>, found: &mut Findings) {
    let version = &author.version;
    refused_fields(version, found);
    for item in version.at("artifacts").items() {
        refused_fields(&item, found);
    }
    everywhere(&author.profile(), found);
    everywhere(&version.at("bootstrap"), found);
}

/// The reason why a field is refused, if it is one of those.
pub(in crate::manifest) fn reason(name: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(refused, _)| *refused == name).map(|(_, why)| *why)
}

fn refused_fields(spot: &Spot<'_>, found: &mut Findings) {
    for (name, field) in spot.fields() {
        if let Some(why) = reason(name) {
            found.refuse(field.misplaced(why));
        }
    }
}

fn everywhere(spot: &Spot<'_>, found: &mut Findings) {
    if let Some(socket) = spot.text().and_then(|text| SOCKETS.iter().find(|socket| text.contains(**socket))) {
        found.refuse(
            spot.problem(format!("names {socket}: a container that reaches the engine owns the node")),
        );
    }
    refused_fields(spot, found);
    for (_, field) in spot.fields() {
        everywhere(&field, found);
    }
    for item in spot.items() {
        everywhere(&item, found);
    }
}
