//! `gpuaas agent doctor`: what this machine lacks to run workloads, each with what to do. The exit code tells.

use std::fmt::Write;

use agent::{Docker, Home, detect_inventory};

use super::engine::{AnyDriver, Choice, choose};
use crate::cli::output;
use crate::failure::Failure;

pub async fn run(home: &Home, choice: Choice, docker_host: Option<&str>) -> Result<(), Failure> {
    let mut findings = vec![enrolment(home)];
    let choice = match home.identity() {
        Ok(identity) => choice.enrolled(&identity.driver)?,
        Err(_) => choice,
    };
    findings.push(match choose(choice, docker_host).await {
        Ok(AnyDriver::Docker(docker)) => engine(&docker).await,
        Ok(AnyDriver::Simulated(_)) => {
            let what =
                "no container engine answers, so workloads would only be simulated: install and start Docker";
            (choice == Choice::Simulated, what.to_owned())
        }
        Err(failure) => (false, failure.message),
    });
    findings.push(gpus().await);
    let mut text = String::new();
    for (well, what) in &findings {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}  {what}", if *well { "ok  " } else { "fix " });
    }
    output::text(&text)?;
    match findings.iter().filter(|(well, _)| !well).count() {
        0 => Ok(()),
        many => Err(Failure::failed(format!("{many} of {} checks ask for something", findings.len()))),
    }
}

fn enrolment(home: &Home) -> (bool, String) {
    match (home.is_enrolled(), home.identity()) {
        (true, Ok(identity)) => (true, format!("enrolled as {} at {}", identity.name, identity.platform)),
        (_, Err(fault)) => (false, fault.to_string()),
        (false, Ok(_)) => (false, "this node has not enrolled".to_owned()),
    }
}

async fn engine(docker: &Docker) -> (bool, String) {
    match docker.version().await {
        Ok(version) => (true, format!("Docker {version} answers")),
        Err(fault) => (false, fault.to_string()),
    }
}

/// A machine without GPUs is well; one with GPUs needs the toolkit that hands them to containers.
async fn gpus() -> (bool, String) {
    let inventory = detect_inventory(0).await;
    let (cores, memory) = (inventory.cpu_cores, inventory.memory_gib);
    if inventory.gpus.is_empty() {
        return (true, format!("{cores} cores, {memory} GiB, no GPU found by nvidia-smi"));
    }
    let count = inventory.gpus.len();
    let toolkit = tokio::process::Command::new("nvidia-ctk").arg("--version").output().await;
    if toolkit.is_ok_and(|said| said.status.success()) {
        return (
            true,
            format!("{cores} cores, {memory} GiB, {count} GPUs with the NVIDIA container toolkit"),
        );
    }
    (
        false,
        format!(
            "{count} GPUs, but the NVIDIA container toolkit is missing: install nvidia-container-toolkit"
        ),
    )
}
