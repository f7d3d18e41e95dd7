//! The permission for one node to pull the image, for as long as a launch may take. The credential itself is made when
//! the task is, and rests nowhere but sealed inside it.

use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_instances::AppInstance;
use store::pull_intents::{self, NewPull};
use store::resource_ledger::{self as ledger, Holder, Kind};
use store::{deployment, registry_credentials};
use uuid::Uuid;

use super::admit::{images, refused};
use super::{held, holder, unreadable};
use crate::Env;

/// A little longer than a launch may take.
pub(super) const LIVES_SECONDS: i32 = 35 * 60;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IssuePullIntent {
    pub instance: Uuid,
    pub node_id: Uuid,
    /// Made at the door; the credential has the same.
    pub pull: Uuid,
}

impl Activity for IssuePullIntent {
    const NAME: &'static str = "issue_pull_intent";
    const UNDO: bool = true;
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        let artifacts = match images(&mut tx, instance.id).await {
            Ok(artifacts) => artifacts,
            Err(why) => {
                tx.rollback().await?;
                return Err(refused(env, instance.id, why).await?);
            }
        };
        let image = deployment::runtime(&artifacts);
        let image = image.ok_or_else(|| unreadable(&"no image was resolved for the instance"))?;
        let new = NewPull {
            id: self.pull,
            org_id: instance.org_id,
            project_id: instance.project_id,
            artifact_id: image.artifact_id,
            repository: &image.repository,
            digest: &image.digest,
            node_id: Some(self.node_id),
            of_release: false,
            created_by: instance.created_by,
            correlation_id: &call.correlation_id,
            ttl_seconds: LIVES_SECONDS,
        };
        pull_intents::insert(&mut tx, &new).await?;
        let (name, who) = (ledger::own(self.pull), holder(&instance, call));
        let taken = ledger::balance_of_run(&mut tx, instance.id, call.run).await?;
        if !taken.iter().any(|held| held.resource == name) {
            ledger::post(&mut tx, who, Kind::PullIntent, &name, 1).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        end_pull(&mut tx, &instance, self.pull, holder(&instance, call)).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// The image is on the node, or nobody will fetch it: the credential is good for nothing from here on.
pub async fn end_pull(
    conn: &mut PgConnection,
    instance: &AppInstance,
    pull: Uuid,
    who: Holder<'_>,
) -> Result<(), Fault> {
    registry_credentials::revoke(conn, pull).await?;
    let mut held = ledger::balance(conn, instance.id).await?;
    held.retain(|held| held.resource == ledger::own(pull));
    ledger::give_back(conn, who, &held).await?;
    Ok(())
}
