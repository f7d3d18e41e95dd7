//! Decides once more what an upgrade or rollback leads to, under the version's lock, and writes it down as the target: from
//! here on the version and its digests are in use.

use domain::placement::Strategy;
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_instance_artifacts::{self, Standing};
use store::app_instances::AppInstance;
use store::deployment::{Change, To, decide_change};
use store::{Refused, app_instance_releases, app_instances};
use uuid::Uuid;

use super::admit::refused;
use super::begin_change::Way;
use super::held;
use crate::Env;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResolveTarget {
    pub instance: Uuid,
    pub way: Way,
    pub version: String,
    pub artifact_id: Option<Uuid>,
    /// What was told when the change was asked for.
    pub strategy: Strategy,
}

/// What the change leads to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Target {
    /// The same serves already.
    pub is_nothing: bool,
    /// The workload that serves until the switch.
    pub old_generation: i64,
}

impl Activity for ResolveTarget {
    const NAME: &'static str = "resolve_target";
    const UNDO: bool = true;
    type Env = Env;
    type Output = Target;

    async fn run(&self, env: &Env, _call: &Call) -> Result<Target, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let gone = || Fault::terminal("no_such_instance", "the instance is gone");
        let instance = app_instances::find(&mut tx, self.instance).await?.ok_or_else(gone)?;
        let change = match self.decide(&mut tx, &instance).await {
            Ok(change) => change,
            Err(why) => {
                tx.rollback().await?;
                return Err(refused(env, self.instance, why).await?);
            }
        };
        held(&mut tx, self.instance).await?;
        let target = Standing::Target;
        app_instances::set_target(&mut tx, self.instance, Some(&self.version)).await?;
        app_instance_artifacts::set(&mut tx, self.instance, target, &change.images).await?;
        app_instance_releases::set(&mut tx, self.instance, target, &change.release).await?;
        let serving = app_instance_releases::find(&mut tx, self.instance, Standing::Serving).await?;
        tx.commit().await?;
        let old_generation = serving.map_or(0, |release| release.generation);
        Ok(Target { is_nothing: change.is_nothing, old_generation })
    }

    async fn undo(&self, env: &Env, _call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        held(&mut tx, self.instance).await?;
        clear_target(&mut tx, self.instance).await?;
        tx.commit().await?;
        Ok(())
    }
}

impl ResolveTarget {
    /// What was promised to stand beside the old one does not stop it because room has become scarce.
    async fn decide(&self, conn: &mut PgConnection, instance: &AppInstance) -> Result<Change, Refused> {
        let to = To {
            version: Some(self.version.clone()),
            artifact_id: self.artifact_id,
            purpose: self.way.purpose(),
        };
        let change = decide_change(conn, instance, &to).await?;
        if self.strategy == Strategy::SideBySide && change.strategy == Strategy::StopThenStart {
            let message = "Both versions do not fit beside each other any more.";
            return Err(Refused::no(domain::ErrorCode::PlacementUnsatisfiable, message));
        }
        Ok(change)
    }
}

/// The instance is on its way nowhere.
pub async fn clear_target(conn: &mut PgConnection, instance: Uuid) -> Result<(), Fault> {
    app_instances::set_target(conn, instance, None).await?;
    app_instance_artifacts::clear(conn, instance, Standing::Target).await?;
    app_instance_releases::clear(conn, instance, Standing::Target).await?;
    Ok(())
}
