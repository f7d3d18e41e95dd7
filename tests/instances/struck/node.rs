//! The node of the strike stories: it does whatever it is asked, without a machine.

use std::time::Duration;

use domain::SmokeVerdict;
use domain::manifest::SmokeTest;
use engine::Engine;
use node_protocol::{Evidence, Key, Launched, Outcome, Output, Signed, Task};
use store::node_tasks::{self, NodeTask};

use super::{NODE, SEED};

/// A node that does at once what it is asked, until the engine is closed.
pub(super) async fn answer(engine: Engine) {
    while let Ok(mut tx) = engine.pool().begin().await {
        // A process that is struck between the two leaves the task to the next one.
        let lease = chrono::TimeDelta::milliseconds(200);
        let task = node_tasks::hand_out(&mut tx, NODE, lease).await;
        // As by the routes, taking a task and finishing it are two transactions: a row that was changed in the same one would be
        // held against its instance again, in the wrong order.
        if tx.commit().await.is_ok()
            && let Ok(Some(task)) = task
        {
            let _ = finish(&engine, &task).await;
        } else {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Fails where the engine is closed meanwhile; the process that it stands for is gone then.
async fn finish(engine: &Engine, task: &NodeTask) -> sqlx::Result<()> {
    let outcome = outcome(task);
    let result = serde_json::to_value(&outcome).unwrap();
    let mut tx = engine.pool().begin().await?;
    node_tasks::finish(&mut tx, NODE, task.id, outcome.status(), &result).await?;
    if let (Some(run), Some(signal)) = (task.run_id, &task.signal) {
        let _ = engine.signal(&mut tx, run, signal, &task.id.to_string(), &result).await;
    }
    tx.commit().await?;
    engine.wake();
    Ok(())
}

fn fine(test: &SmokeTest) -> SmokeVerdict {
    SmokeVerdict { name: test.name.clone(), passed: true, status: Some(200), message: None }
}

fn outcome(task: &NodeTask) -> Outcome {
    let output = match Task::read(&task.kind, &task.input).unwrap() {
        Task::OciLaunch(launch) => Output::Launched {
            members: vec![Launched {
                member: launch.workload.member.clone(),
                container_id: "c".into(),
                digest: launch.workload.image.digest.clone(),
                ports: launch.workload.ports.iter().map(|port| (port.name.clone(), port.host)).collect(),
                serves: false,
            }],
        },
        Task::OciRemove(remove) => {
            let evidence = Evidence {
                node_id: NODE,
                instance_id: remove.instance_id,
                task_id: task.id,
                generations: remove.generations,
                driver: "simulated".into(),
                removed: vec![],
                remaining: vec![],
                observed_at: task.created_at,
            };
            Output::Removed { evidence: Signed::sign(&evidence, &Key::from_pem(SEED).unwrap()).unwrap() }
        }
        Task::OciControl(_) => Output::Controlled,
        Task::DiagHealthProbe(probe) if probe.requests.is_empty() => Output::Healthy { tries: 1 },
        Task::DiagHealthProbe(probe) => Output::Asked { requests: probe.requests.iter().map(fine).collect() },
        Task::SshInstallAuthorizedKeys(_) => Output::KeysInstalled,
        Task::AgentSelfUpdate(update) => Output::Updated { version: update.version },
        other => panic!("nobody asks a node for {other:?}"),
    };
    Outcome::Succeeded { output }
}
