//! The identity that a workload speaks to the platform with: a service account of its own, for as long as the instance is
//! there. Its keys are made when it is launched, so that no private half rests anywhere readable.

use domain::PermissionSet;
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_instances::AppInstance;
use store::resource_ledger::{self as ledger, Kind};
use store::service_accounts::{self, NewServiceAccount};
use store::{app_instances, service_account_keys};
use uuid::Uuid;

use super::{held, holder};
use crate::Env;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProvisionIdentity {
    pub instance: Uuid,
    /// Made at the door, so that a second try finds it and the undo needs nothing else.
    pub account: Uuid,
}

impl Activity for ProvisionIdentity {
    const NAME: &'static str = "provision_identity";
    const UNDO: bool = true;
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        if instance.operator_service_account_id != Some(self.account) {
            let slug = format!("app-{}", instance.id);
            service_accounts::insert(&mut tx, &account(&instance, self.account, &slug)).await?;
            app_instances::set_account(&mut tx, instance.id, Some(self.account)).await?;
            let name = ledger::own(self.account);
            ledger::post(&mut tx, holder(&instance, call), Kind::ServiceAccount, &name, 1).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        if instance.operator_service_account_id == Some(self.account) {
            end_identity(&mut tx, &instance).await?;
            ledger::give_back_of_run(&mut tx, holder(&instance, call), &[Kind::ServiceAccount]).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}

/// It may do nothing by a key of the project: what an instance may do, it may do to itself alone.
fn account<'a>(instance: &'a AppInstance, id: Uuid, slug: &'a str) -> NewServiceAccount<'a> {
    NewServiceAccount {
        id,
        org_id: instance.org_id,
        project_id: instance.project_id,
        slug,
        name: &instance.display_name,
        description: Some("The identity of an app instance; it ends with it."),
        keys: PermissionSet::EMPTY,
        created_by: instance.created_by,
    }
}

/// From here on nobody is the instance any more. The account's row stays, so that history can name it.
pub async fn end_identity(conn: &mut PgConnection, instance: &AppInstance) -> Result<(), Fault> {
    let Some(account) = instance.operator_service_account_id else { return Ok(()) };
    service_account_keys::revoke_all(conn, account).await?;
    service_accounts::set_status(conn, account, "deleted").await?;
    app_instances::set_account(conn, instance.id, None).await?;
    Ok(())
}
