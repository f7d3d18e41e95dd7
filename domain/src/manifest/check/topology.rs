//! The topology of a Compose stack: services, endpoints and mounts name each other, and only what exists.

use super::unique;
use crate::manifest::artifact::ArtifactSlot;
use crate::manifest::author::Author;
use crate::manifest::check::Findings;
use crate::manifest::spot::Spot;

/// Folders that the kernel and the platform fill themselves.
const TAKEN: &[&str] = &["/proc", "/sys", "/dev", "/run/gpuaas"];

pub(super) fn check(author: &Author<'_>, found: &mut Findings) {
    let topology = author.profile().at("topology");
    let services = topology.at("services").items();
    let named = services.iter().filter_map(|s| Some((s.at("name").text()?.to_owned(), s.at("name"))));
    unique(named, "is the name of a service above", found);
    let artifacts = author.version.at("artifacts").items();
    for service in &services {
        image(&service.at("artifact"), &artifacts, found);
    }
    for endpoint in topology.at("endpoints").items() {
        known_service(&endpoint.at("service"), &services, found);
        let port = endpoint.at("port");
        let declared = |number| {
            author
                .profile()
                .at("ports")
                .items()
                .iter()
                .any(|port| port.at("container").number() == Some(number))
        };
        if port.number().is_some_and(|number| !declared(number)) {
            found.refuse(port.problem("is not among runtime_profile.ports"));
        }
    }
    let endpoints = topology.at("endpoints").items();
    let named = endpoints.iter().filter_map(|e| Some((e.at("name").text()?.to_owned(), e.at("name"))));
    unique(named, "is the name of an endpoint above", found);
    for mount in topology.at("mounts").items() {
        known_service(&mount.at("service"), &services, found);
        blob(&mount.at("artifact"), &artifacts, found);
        path(&mount.at("path"), found);
    }
}

fn known_service(service: &Spot<'_>, services: &[Spot<'_>], found: &mut Findings) {
    let known = |name: &str| services.iter().any(|service| service.at("name").is(name));
    if service.text().is_some_and(|name| !known(name)) {
        found.refuse(service.problem("is not among the services"));
    }
}

fn image(artifact: &Spot<'_>, artifacts: &[Spot<'_>], found: &mut Findings) {
    let name = artifact.text().unwrap_or(ArtifactSlot::RUNTIME);
    if artifacts.is_empty() && name == ArtifactSlot::RUNTIME {
        return;
    }
    match artifacts.iter().find(|slot| slot.at("name").is(name)) {
        None => found.refuse(artifact.problem(format!("names `{name}`, which is not among the artifacts"))),
        Some(slot) if slot.at("artifact_kind").is("blob") => {
            found.refuse(artifact.problem("must be an image, and this artifact is a blob"));
        }
        Some(_) => {}
    }
}

fn blob(artifact: &Spot<'_>, artifacts: &[Spot<'_>], found: &mut Findings) {
    let Some(name) = artifact.text() else { return };
    match artifacts.iter().find(|slot| slot.at("name").is(name)) {
        None => found.refuse(artifact.problem("is not among the artifacts")),
        Some(slot) if !slot.at("artifact_kind").is("blob") => {
            found.refuse(artifact.problem("must be a blob, and this artifact is an image"));
        }
        Some(_) => {}
    }
}

fn path(path: &Spot<'_>, found: &mut Findings) {
    let Some(text) = path.text() else { return };
    if text.split('/').any(|part| part == "..") {
        found.refuse(path.problem("must not climb with `..`"));
    }
    if let Some(taken) = TAKEN.iter().find(|taken| text == **taken || text.starts_with(&format!("{taken}/")))
    {
        found.refuse(path.problem(format!("must not lie in {taken}, which the platform fills itself")));
    }
}
