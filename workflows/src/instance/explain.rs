//! The workflows of instances in words, for people who ask what an action would do before they ask for it.

use engine::{PlannedStep, Workflow};

use super::decommission::DecommissionInstance;
use super::deploy::DeployInstance;
use super::{RollbackInstance, UpgradeInstance};

/// One step, in words.
#[derive(Clone, Copy, Debug)]
pub struct Explained {
    pub name: &'static str,
    pub touches: &'static str,
    pub undo: bool,
    /// The kind of task that a node does meanwhile.
    pub task: Option<&'static str>,
    /// Whether it happens only where the old version has to stop before the new one can start.
    pub stops_first: bool,
}

/// The name of the workflow that an action runs, and its steps.
pub fn explain(action: &str) -> Option<(&'static str, Vec<Explained>)> {
    let (name, plan) = match action {
        "deploy" => (DeployInstance::NAME, DeployInstance::PLAN),
        "upgrade" => (UpgradeInstance::NAME, UpgradeInstance::PLAN),
        "rollback" => (RollbackInstance::NAME, RollbackInstance::PLAN),
        "decommission" => (DecommissionInstance::NAME, DecommissionInstance::PLAN),
        _ => return None,
    };
    Some((name, plan.iter().map(|step| explained(action, step)).collect()))
}

fn explained(action: &str, step: &PlannedStep) -> Explained {
    let (touches, task) = words(action, step.name);
    let stops_first = matches!(step.name, "stop_workload" | "workload_stopped");
    Explained { name: step.name, touches, undo: step.undoable, task, stops_first }
}

fn words(action: &str, step: &str) -> (&'static str, Option<&'static str>) {
    match step {
        "begin_deploy" => ("the instance: it is deploying", None),
        "begin_change" => ("the instance: it changes, and serves on", None),
        "check_entitlement" => ("nothing: looks again at entitlement and policy", None),
        "resolve_target" => ("the instance: the version and digests it goes to are in use", None),
        "resolve_artifacts" => ("nothing: looks again at the artifacts, in the registry itself", None),
        "mark_unchanged" => ("the instance, where the same serves already: nothing else happens", None),
        "release_earlier" => ("the resource ledger, on a retry: gives back what an earlier try held", None),
        "reserve_placement" => ("the allocation and the node's ports: takes what the instance gets", None),
        "provision_identity" => ("the project's service accounts: the instance gets one of its own", None),
        "ssh_trust_installed" => {
            ("the node, where the version asks for it: lets the key in that sets it up", None)
        }
        "issue_pull_intent" => ("the registry's credentials: the node may pull this one image", None),
        "launch_workload" => ("the node: a task to pull the image by digest and start it", None),
        "workload_launched" => ("the node: pulls and starts the new workload", Some("oci.launch")),
        "probe_workload" => {
            ("the node, unless it saw it serve at once: a task to ask it until it does", None)
        }
        "workload_healthy" => {
            ("the node, unless it saw it serve at once: asks it until it does", Some("diag.health_probe"))
        }
        "start_metering" => ("the meters: the instance's time is counted from now on", None),
        "close_metering" => ("the meters: the last of the instance's time is written down", None),
        "mark_running" => ("the instance: it runs, and is reached at its endpoints", None),
        "stop_workload" => ("the node, where both do not fit: a task to stop the old workload", None),
        "workload_stopped" => {
            ("the node, where both do not fit: stops the old workload", Some("oci.control"))
        }
        "switch_endpoint" => {
            ("the instance: the new version serves, the old one is where a rollback goes", None)
        }
        "release_old" => ("the resource ledger: gives back what the old workload held", None),
        "stop_accepting_work" => ("the instance: it is decommissioning", None),
        "end_trust" => ("the node, where a key set it up: a task to take that key out", None),
        "ssh_trust_ended" => ("the node, where a key set it up: lets that key in no more", None),
        "sign_receipt" => ("nothing: checks the node's evidence and signs a receipt of it", None),
        "mark_decommissioned" => ("everything the instance held: identity, credentials, placement", None),
        "remove_workload" => match action {
            "deploy" => ("the node, on a retry: a task to take away what an earlier try left", None),
            "decommission" => ("the node: a task to take everything of the instance away", None),
            _ => ("the node: a task to take the old workload away", None),
        },
        "workload_removed" => match action {
            "deploy" => ("the node, on a retry: takes away what an earlier try left", None),
            _ => ("the node: takes it away and shows that it is gone", Some("oci.remove")),
        },
        _ => ("", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_every_action_is_explained() {
        for action in ["deploy", "upgrade", "rollback", "decommission"] {
            let (_, steps) = explain(action).unwrap();
            for step in steps {
                assert!(!step.touches.is_empty(), "{action}: {} is not explained", step.name);
            }
        }
        assert!(explain("explode").is_none());
    }
}
