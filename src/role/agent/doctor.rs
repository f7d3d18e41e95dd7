//! `gpuaas agent doctor`: what this machine lacks to run workloads, each with what to do. The exit code tells.

use agent::{Docker, DriverFault, Home, Subnet, detect_inventory};

use super::engine::{AnyDriver, Choice, DockerAt, choose};
use crate::cli::output::{self, Format};
use crate::failure::Failure;

pub async fn run(
    home: &Home,
    choice: Choice,
    docker_at: DockerAt<'_>,
    format: Format,
) -> Result<(), Failure> {
    let mut findings = vec![enrolment(home)];
    let choice = match home.identity() {
        Ok(identity) => choice.enrolled(&identity.driver)?,
        Err(_) => choice,
    };
    let driver = choose(choice, docker_at).await;
    let docker = match &driver {
        Ok(AnyDriver::Docker(docker)) => Some(docker.clone()),
        _ => None,
    };
    findings.push(match driver {
        Ok(AnyDriver::Docker(docker)) => engine(&docker).await,
        Ok(AnyDriver::Simulated(_)) => {
            let what =
                "no container engine answers, so workloads would only be simulated: install and start Docker";
            (choice == Choice::Simulated, what.to_owned())
        }
        Err(failure) => (false, failure.message),
    });
    findings.push(gpus(docker.as_ref()).await);
    findings.push(networks(docker_at.pool));
    let verdict = |well: bool| if well { "ok" } else { "fix" };
    let named: Vec<(&str, &str, &str)> = ["enrolment", "engine", "machine", "networks"]
        .into_iter()
        .zip(&findings)
        .map(|(check, (well, what))| (check, verdict(*well), what.as_str()))
        .collect();
    let rows: Vec<Vec<String>> = named
        .iter()
        .map(|(check, verdict, what)| [*check, verdict, what].map(str::to_owned).to_vec())
        .collect();
    let data: Vec<serde_json::Value> = named
        .iter()
        .map(|(check, verdict, what)| serde_json::json!({ "check": check, "verdict": verdict, "detail": what }))
        .collect();
    output::print(format, &["check", "verdict", "detail"], &rows, &data)?;
    match findings.iter().filter(|(well, _)| !well).count() {
        0 => Ok(()),
        many => Err(Failure::failed(format!("{many} of {} checks ask for something", findings.len()))),
    }
}

/// Where this machine reaches something else already, no instance can have a network.
fn networks(pool: Subnet) -> (bool, String) {
    let (free, _) = pool.room();
    if free > 0 {
        return (true, format!("instances have networks in {pool}"));
    }
    let what = "this machine reaches something else by them: choose others with --subnet-pool";
    (false, format!("no network is free in {pool}; {what}"))
}

fn enrolment(home: &Home) -> (bool, String) {
    match (home.is_enrolled(), home.identity()) {
        (true, Ok(identity)) => (true, format!("enrolled as {} at {}", identity.name, identity.platform)),
        (_, Err(fault)) => (false, fault.to_string()),
        (false, Ok(_)) => (false, "this node has not enrolled".to_owned()),
    }
}

async fn engine(docker: &Docker) -> (bool, String) {
    let about = async { Ok::<_, DriverFault>((docker.version().await?, docker.usual_runtime().await?)) };
    match about.await {
        Ok((version, Some(runtime))) => {
            (true, format!("Docker {version} answers and runs containers by {runtime}"))
        }
        Ok((version, None)) => (true, format!("Docker {version} answers")),
        Err(fault) => (false, fault.to_string()),
    }
}

/// A machine without GPUs is well; one with GPUs needs an engine that was told of the toolkit that hands them to containers.
async fn gpus(docker: Option<&Docker>) -> (bool, String) {
    let inventory = detect_inventory(0).await;
    let (cores, memory) = (inventory.cpu_cores, inventory.memory_gib);
    if inventory.gpus.is_empty() {
        return (true, format!("{cores} cores, {memory} GiB, no GPU found by nvidia-smi"));
    }
    let count = inventory.gpus.len();
    let knows = match docker {
        Some(docker) => docker.knows_nvidia().await,
        None => Ok(false),
    };
    match knows {
        Ok(true) => {
            (true, format!("{cores} cores, {memory} GiB, {count} GPUs that the engine hands to containers"))
        }
        Ok(false) => {
            let what = "but the engine has no runtime `nvidia`: install nvidia-container-toolkit, then run \
                        `nvidia-ctk runtime configure --runtime=docker` and restart Docker";
            (false, format!("{count} GPUs, {what}"))
        }
        Err(fault) => (false, fault.to_string()),
    }
}
