//! The first step of an upgrade or a rollback: the instance says that it changes, and goes on serving. Its undo is the last
//! of the way back: it serves what it served before, and says why it did not change.

use domain::{EventType, InstanceStatus};
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::app_instances::{self, AppInstance};
use store::deployment::Purpose;
use uuid::Uuid;

use super::{held, tell, tell_canary, thread, why};
use crate::Env;

/// Which way a version changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    Upgrade,
    Rollback,
}

impl Way {
    pub const fn as_str(self) -> &'static str {
        match self {
            Way::Upgrade => "upgrade",
            Way::Rollback => "rollback",
        }
    }

    /// What the instance is meanwhile.
    pub const fn status(self) -> InstanceStatus {
        match self {
            Way::Upgrade => InstanceStatus::Upgrading,
            Way::Rollback => InstanceStatus::RollingBack,
        }
    }

    pub const fn purpose(self) -> Purpose {
        match self {
            Way::Upgrade => Purpose::New,
            Way::Rollback => Purpose::Return,
        }
    }

    pub const fn requested(self) -> EventType {
        match self {
            Way::Upgrade => EventType::InstanceUpgradeRequested,
            Way::Rollback => EventType::InstanceRollbackRequested,
        }
    }

    pub const fn done(self) -> EventType {
        match self {
            Way::Upgrade => EventType::InstanceUpgraded,
            Way::Rollback => EventType::InstanceRolledBack,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BeginChange {
    pub instance: Uuid,
    pub way: Way,
    /// Where it goes.
    pub version: String,
}

impl Activity for BeginChange {
    const NAME: &'static str = "begin_change";
    const UNDO: bool = true;
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, _call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let (from, to) = (held(&mut tx, self.instance).await?.status()?, self.way.status());
        if from != to && !app_instances::move_to(&mut tx, self.instance, from, to, None).await? {
            return Err(Fault::terminal("state_conflict", format!("the instance is {from}")));
        }
        tx.commit().await?;
        Ok(())
    }

    /// An instance that is being decommissioned meanwhile stays that.
    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let why = why(&mut tx, self.instance, call.run).await?;
        // Versions are locked before instances.
        if why.reason.blames_version() {
            let told = (call.run, thread(call));
            tell_canary(&mut tx, self.instance, Some(&self.version), told, true).await?;
        }
        let now = held(&mut tx, self.instance).await?;
        let (from, to) = (self.way.status(), InstanceStatus::Running);
        let moved = app_instances::move_to(&mut tx, self.instance, from, to, None).await?;
        // One that was turned back before it began was asked for all the same, and has failed.
        if !moved && (now.status()? != to || is_told(&now, call.run)) {
            return Ok(());
        }
        let failed = json!({
            "kind": self.way.as_str(), "status": "failed", "version": self.version, "workflow_id": call.run,
            "reason": { "code": why.reason, "kind": why.reason.kind(), "message": why.message },
        });
        app_instances::set_last_operation(&mut tx, now.id, &failed).await?;
        let operation = self.way.as_str();
        tell(&mut tx, now.id, EventType::InstanceFailed, operation, thread(call)).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// Whether the instance says already how this run ended.
fn is_told(instance: &AppInstance, run: Uuid) -> bool {
    instance.last_operation.as_ref().is_some_and(|last| last["workflow_id"] == json!(run))
}
