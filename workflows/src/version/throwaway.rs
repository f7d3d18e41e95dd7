//! The instance that a version's own tests run on: one of the owning project, on its first allocation that fits, with the
//! manifest's `smoke_config` and defaults. Nobody is entitled to it and nothing but the tests is asked of it. Its undo takes
//! it away.

use std::time::Duration;

use activities::{Env, instance};
use domain::manifest::Manifest;
use domain::{EventType, InstanceStatus};
use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::app_versions::AppVersion;
use store::deployment::{self, Purpose, Request, Wish};
use store::{Refused, app_instances, app_versions};
use uuid::Uuid;

use crate::instance::decommission;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct OpenThrowaway {
    pub version_id: Uuid,
    /// Made at the door, so that a second try finds it and the undo needs nothing else.
    pub instance: Uuid,
    pub created_by: Uuid,
}

impl Activity for OpenThrowaway {
    const NAME: &'static str = "open_throwaway";
    /// The undo waits for the instance to be gone by trying again: ten seconds apart, for a quarter of an hour.
    const RETRY: Retry =
        Retry::times(100).starting_at(Duration::from_millis(200)).at_most(Duration::from_secs(10));
    const UNDO: bool = true;
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.pool().begin().await?;
        if app_instances::find(&mut tx, self.instance).await?.is_some() {
            return Ok(());
        }
        let version = app_versions::lock(&mut tx, self.version_id).await?;
        let version = version.ok_or_else(|| Fault::terminal("version_not_found", "the version is gone"))?;
        let place = version.owner();
        let wish = Wish { config: config(&version)?, ..Wish::default() };
        let decision = deployment::decide(&mut tx, place, &version, &wish, Purpose::Smoke).await;
        let decision = decision.map_err(impossible)?;
        let request = Request {
            id: self.instance,
            place,
            display_name: &format!("Smoke test of {} {}", version.slug, version.version),
            created_by: self.created_by,
            correlation_id: &call.correlation_id,
        };
        deployment::write(&mut tx, request, &version, &decision, &wish).await?;
        let requested = EventType::InstanceRequested;
        instance::tell(&mut tx, self.instance, requested, "smoke", instance::thread(call)).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.pool().begin().await?;
        let Some(instance) = app_instances::find_locked(&mut tx, self.instance).await? else {
            return Ok(());
        };
        match instance.status()? {
            InstanceStatus::Decommissioned => return Ok(()),
            InstanceStatus::Decommissioning => {
                if decommission::end_after_all(env, &mut tx, &instance, call).await? {
                    tx.commit().await?;
                    env.engine().wake();
                }
            }
            _ => {
                decommission::end(env, &mut tx, &instance, call).await?;
                tx.commit().await?;
                env.engine().wake();
            }
        }
        Err(Fault::retry("waiting_for_node", "the instance that the tests ran on is not gone yet"))
    }
}

/// What the manifest says the tests run with.
fn config(version: &AppVersion) -> Result<Option<Value>, Fault> {
    let manifest: Manifest = serde_json::from_value(version.manifest.clone()).map_err(|error| {
        Fault::terminal("validation_error", format!("the manifest cannot be read: {error}"))
    })?;
    Ok(manifest.version.smoke_config.map(Value::Object))
}

/// Why no instance of the version can be made for its tests.
fn impossible(refused: Refused) -> Fault {
    match refused {
        Refused::Database(error) => error.into(),
        Refused::No { code, message, .. } => Fault::terminal(code.as_str(), message),
        Refused::Invalid(problems) => {
            let told: Vec<String> =
                problems.into_iter().map(|(pointer, message)| format!("{pointer} {message}")).collect();
            let message = format!("no instance can be made of the manifest alone: {}", told.join("; "));
            Fault::terminal("validation_error", message)
        }
    }
}
