//! Backend, operating modes and scopes fit each other.

use crate::manifest::author::{Author, Form};
use crate::manifest::check::Findings;
use crate::runtime::{ControlPlaneScope, OperatingMode};

pub(super) fn check(author: &Author<'_>, found: &mut Findings) {
    backends(author, found);
    pairs(author, found);
    if author.app.at("ui").at("extension_kind").is("embedded")
        && author.backend().is_some_and(|b| b.runs_on_agent())
    {
        gateway(author, found);
    }
}

fn backends(author: &Author<'_>, found: &mut Findings) {
    let own = author.version.at("runtime_backend");
    if author.form == Form::Package {
        if let (Some(app), Some(version)) = (author.app.at("runtime_backend").text(), own.text())
            && app != version
        {
            found.refuse(own.problem(format!("must be the app's, which is `{app}`")));
        }
    } else if !own.exists() && !author.profile().exists() {
        found.refuse(author.profile().problem("is required: its `kind` says what runs the app"));
    }
    let Some(backend) = author.backend() else { return };
    let (profile, contract) = (author.profile(), author.version.at("external_worker_contract"));
    if !backend.runs_on_agent() {
        if profile.exists() {
            found.refuse(profile.misplaced(format!(
                "is for apps that the node agent runs; `{backend}` is run by your own controller"
            )));
        }
        if !contract.exists() {
            found.warn(
                contract.problem("is missing: controllers are then offered `deploy` alone, without members"),
            );
        }
        return;
    }
    if contract.exists() {
        found.refuse(contract.misplaced(format!(
            "is for apps with a controller of their own; the node agent runs `{backend}`"
        )));
    }
    if !profile.exists() && author.form == Form::Package {
        found.refuse(profile.problem(format!("is required for `{backend}`")));
    }
    let kind = profile.at("kind");
    if kind
        .text()
        .is_some_and(|word| word != backend.as_str() && word.parse::<crate::RuntimeBackend>().is_ok())
    {
        found.refuse(kind.problem(format!("must be the backend, which is `{backend}`")));
    }
}

/// Every mode needs a scope it goes with, and every scope a mode.
fn pairs(author: &Author<'_>, found: &mut Findings) {
    let supported = author.app.at("supported_modes");
    let (modes, scopes) = (supported.at("operating_modes"), supported.at("control_plane_scopes"));
    let mut mode_words: Vec<OperatingMode> =
        modes.items().iter().filter_map(|m| m.text()?.parse().ok()).collect();
    let mut scope_words: Vec<ControlPlaneScope> =
        scopes.items().iter().filter_map(|s| s.text()?.parse().ok()).collect();
    if !modes.exists() {
        mode_words.push(OperatingMode::TenantDedicated);
    }
    if !scopes.exists() {
        scope_words.push(ControlPlaneScope::Project);
    }
    for item in modes.items() {
        let Some(mode) = item.text().and_then(|word| word.parse::<OperatingMode>().ok()) else { continue };
        if !scope_words.iter().any(|scope| mode.supports(*scope)) {
            found.refuse(
                item.problem(format!("goes with {}, which control_plane_scopes lacks", partners(mode))),
            );
        }
    }
    for item in scopes.items() {
        let Some(scope) = item.text().and_then(|word| word.parse::<ControlPlaneScope>().ok()) else {
            continue;
        };
        if !mode_words.iter().any(|mode| mode.supports(scope)) {
            let mode = OperatingMode::ALL.into_iter().find(|mode| mode.supports(scope));
            let mode = mode.map(OperatingMode::as_str).unwrap_or_default();
            found.refuse(item.problem(format!("goes with `{mode}`, which operating_modes lacks")));
        }
    }
}

fn partners(mode: OperatingMode) -> String {
    let scopes = ControlPlaneScope::ALL.into_iter().filter(|scope| mode.supports(*scope));
    scopes.map(|scope| format!("`{scope}`")).collect::<Vec<_>>().join(" or ")
}

/// Pages inside the console come through the gateway, so a port must be there for it.
fn gateway(author: &Author<'_>, found: &mut Findings) {
    let ports = author.profile().at("ports").items();
    let endpoints = author.profile().at("topology").at("endpoints").items();
    if !ports.iter().chain(&endpoints).any(|port| port.at("expose").is("embedded_ui_gateway")) {
        let kind = author.app.at("ui").at("extension_kind");
        found.refuse(kind.problem("needs a port with `expose: embedded_ui_gateway`"));
    }
}
