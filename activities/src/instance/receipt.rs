//! Checks a node's evidence against the key the node enrolled with and against what it was asked for, and makes the platform's
//! receipt of it.

use engine::{Activity, Call, Fault};
use node_protocol::{Evidence, PublicKey, Receipt, Signed, Task};
use serde::{Deserialize, Serialize};
use store::node_tasks::{self, NodeTask};
use store::resource_ledger as ledger;
use store::{app_instances, nodes};
use uuid::Uuid;

use super::unreadable;
use crate::{Env, SignerFault};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SignReceipt {
    pub instance: Uuid,
    pub node_id: Uuid,
    pub evidence: Signed,
}

impl Activity for SignReceipt {
    const NAME: &'static str = "sign_receipt";
    type Env = Env;
    type Output = Signed;

    async fn run(&self, env: &Env, call: &Call) -> Result<Signed, Fault> {
        let signers = env.signers()?;
        let mut tx = env.engine.pool().begin().await?;
        let gone = |what: &str| Fault::terminal("gone", format!("the {what} is gone"));
        let instance = app_instances::find(&mut tx, self.instance).await?.ok_or_else(|| gone("instance"))?;
        let node_key = nodes::enrolled_key(&mut tx, self.node_id).await?.ok_or_else(|| gone("node"))?;
        let node = nodes::find(&mut tx, self.node_id).await?.ok_or_else(|| gone("node"))?;
        let evidence = self.checked(&node_key, node.driver.as_deref())?;
        let task = node_tasks::find(&mut tx, evidence.task_id).await?;
        self.is_of_this_end(&evidence, task, call.run)?;
        let held = ledger::balance(&mut tx, instance.id).await?;
        let receipt = Receipt {
            instance_id: instance.id,
            project_id: instance.project_id,
            node_id: self.node_id,
            node_key,
            evidence: self.evidence.clone(),
            released: held.iter().map(|held| format!("{}:{}", held.kind, held.resource)).collect(),
            decommissioned_at: evidence.observed_at,
        };
        let (key, _) = signers.active(&mut tx).await.map_err(|fault| match fault {
            SignerFault::Database(error) => error.into(),
            other => Fault::needs_operator("signer", other.to_string()),
        })?;
        tx.commit().await?;
        Signed::sign(&receipt, &key).map_err(|fault| unreadable(&fault))
    }
}

impl SignReceipt {
    /// A driver sees only its own: what another than the node's found to be gone may well run on.
    fn checked(&self, node_key: &str, driver: Option<&str>) -> Result<Evidence, Fault> {
        let key = PublicKey::from_pem(node_key).map_err(|fault| unreadable(&fault))?;
        let evidence: Evidence = self.evidence.open(&key).map_err(|fault| unreadable(&fault))?;
        let about_this = evidence.instance_id == self.instance && evidence.node_id == self.node_id;
        let message = if driver.is_some_and(|driver| driver != evidence.driver) {
            format!("the node's evidence is of the driver `{}`, which is not the node's", evidence.driver)
        } else if about_this && evidence.is_clean() {
            return Ok(evidence);
        } else {
            format!("the node's evidence does not show a clean teardown: {:?} remain", evidence.remaining)
        };
        Err(Fault::needs_operator("teardown_unproven", message))
    }

    /// Evidence says what a node looked for, not what it was asked: only that of a removal for good by this very run will do.
    fn is_of_this_end(&self, evidence: &Evidence, task: Option<NodeTask>, run: Uuid) -> Result<(), Fault> {
        let task = task.filter(|task| task.run_id == Some(run) && task.node_id == self.node_id);
        match task.and_then(|task| Task::read(&task.kind, &task.input).ok()) {
            Some(Task::OciRemove(asked) | Task::ComposeRemove(asked))
                if asked.instance_id == self.instance
                    && asked.for_good
                    && evidence.generations.cover(asked.generations) =>
            {
                Ok(())
            }
            _ => {
                let message = "the node's evidence is not of the removal that this run asked for";
                Err(Fault::needs_operator("teardown_unproven", message))
            }
        }
    }
}
