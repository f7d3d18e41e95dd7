//! The manifest's own tests: a fresh instance of the version is deployed as anybody's would be, asked on its node, and
//! taken away again whatever it answered. What was found is kept, and the gate is judged by it.

use std::time::Duration;

use activities::Env;
use activities::instance::{self, AskWorkload};
use domain::version_gate::{Check, Gate, red};
use domain::{SmokeEvidence, SmokeVerdict};
use engine::{Fault, Halt, Run};
use node_protocol::{Outcome, Output};
use serde_json::json;
use sqlx::PgConnection;
use store::smoke_runs;
use uuid::Uuid;

use super::PromoteVersion;
use super::throwaway::OpenThrowaway;
use crate::instance::decommission::{self, DecommissionInstance};
use crate::instance::deploy::DeployInstance;
use crate::told::Told;

/// On top of the time that the tests themselves may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);

/// Whether the tests still have to pass before the version moves.
pub(super) fn is_due(gates: &[Gate]) -> bool {
    red(gates).iter().any(|gate| gate.check == Check::SmokePassed)
}

impl PromoteVersion {
    pub(super) async fn smoke(&self, run: &mut Run<Env>, throwaway: &DeployInstance) -> Result<(), Halt> {
        let (version_id, instance) = (self.version_id, throwaway.instance);
        run.step(OpenThrowaway { version_id, instance, created_by: self.by.actor_id }).await?;
        let (trouble, requests) = match run.try_child(throwaway).await? {
            Ok(_) => ask(run, throwaway).await?,
            Err(_) => (Some("no instance of it came to run".to_owned()), Vec::new()),
        };
        let evidence = SmokeEvidence { app_instance_id: instance, trouble, requests };
        let told = Told::of(run);
        let ending: DecommissionInstance = run
            .transact("record_smoke", move |conn| {
                let (evidence, told) = (evidence.clone(), told.clone());
                Box::pin(async move { record(conn, version_id, &evidence, &told).await })
            })
            .await?;
        run.child(&ending).await?;
        Ok(())
    }
}

/// A verdict for each request, or why there is none.
async fn ask(
    run: &mut Run<Env>,
    throwaway: &DeployInstance,
) -> Result<(Option<String>, Vec<SmokeVerdict>), Halt> {
    let DeployInstance { instance, generation, .. } = *throwaway;
    let seconds = run.step(AskWorkload { instance, generation }).await?;
    let within = ANSWERS_WITHIN + Duration::from_secs(seconds);
    Ok(match run.wait_until(instance::ASKED, "", within).await? {
        Some(Outcome::Succeeded { output: Output::Asked { requests } }) => (None, requests),
        Some(Outcome::Succeeded { output }) => {
            (Some(format!("the node answered something else: {output:?}")), vec![])
        }
        Some(Outcome::Failed { message, .. }) => (Some(message), vec![]),
        Some(Outcome::Refused { refusal }) => (Some(format!("the node refused the task: {refusal}")), vec![]),
        None => (Some(format!("the node did not answer within {within:?}")), vec![]),
    })
}

/// What was found, and in the same commit the end of the instance that it was found on.
async fn record(
    conn: &mut PgConnection,
    version: Uuid,
    evidence: &SmokeEvidence,
    told: &Told,
) -> Result<DecommissionInstance, Fault> {
    let instance = instance::held(conn, evidence.app_instance_id).await?;
    let mut evidence = evidence.clone();
    // An instance that failed says why itself.
    if let (Some(trouble), Some(why)) = (&mut evidence.trouble, &instance.status_message) {
        *trouble = format!("{trouble}: {why}");
    }
    smoke_runs::insert(conn, version, told.run, evidence.passed(), &json!(evidence)).await?;
    Ok(decommission::ask_for(conn, &instance, told.thread()).await?)
}
