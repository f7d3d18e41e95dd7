//! The identity that a workload speaks to the platform with: a service account of its own, for as long as the instance is
//! there. Its keys are made when it is launched, so that no private half rests anywhere readable. And who may log in to its node
//! to set it up, where its version asks for that.

use domain::PermissionSet;
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_instances::AppInstance;
use store::deployment::credentials::BOOTSTRAP;
use store::resource_ledger::{self as ledger, Kind};
use store::service_accounts::{self, NewServiceAccount};
use store::{access_credentials, allocations, app_instances, deployment, service_account_keys, ssh_trusts};
use uuid::Uuid;

use super::{held, holder};
use crate::Env;
use crate::trust::{Asking, tell};

/// The word for which a run waits after this step.
pub const TRUSTED: &str = "ssh_trust_installed";

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
    /// The task by which the node learns who may log in, where somebody may; the run waits for it.
    type Output = Option<Uuid>;

    async fn run(&self, env: &Env, call: &Call) -> Result<Option<Uuid>, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        if instance.operator_service_account_id != Some(self.account) {
            let slug = format!("app-{}", instance.id);
            service_accounts::insert(&mut tx, &account(&instance, self.account, &slug)).await?;
            app_instances::set_account(&mut tx, instance.id, Some(self.account)).await?;
            let name = ledger::own(self.account);
            ledger::post(&mut tx, holder(&instance, call), Kind::ServiceAccount, &name, 1).await?;
        }
        let told = trust(&mut tx, &instance, call).await?;
        tx.commit().await?;
        Ok(told)
    }

    async fn undo(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = held(&mut tx, self.instance).await?;
        if instance.operator_service_account_id == Some(self.account) {
            end_identity(&mut tx, &instance).await?;
            ledger::give_back_of_run(&mut tx, holder(&instance, call), &[Kind::ServiceAccount]).await?;
        }
        end_trust(&mut tx, instance.id, &call.idempotency_key, &call.correlation_id).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// Tells the node once more who may log in: it said that it was told of a newer set, and that one may have failed there. The trust
/// itself is the identity's to undo.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TellTrustAgain {
    pub node_id: Uuid,
    /// Which try this is; the run waits for the answer to this very one.
    pub attempt: u32,
}

impl Activity for TellTrustAgain {
    const NAME: &'static str = "tell_trust_again";
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let signal = format!("{TRUSTED}/{}", self.attempt);
        tell(&mut tx, self.node_id, Asking::by(call, &signal)).await?;
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

/// The key that the instance was given opens its node from here on. A retry after the key was revoked has none.
async fn trust(conn: &mut PgConnection, instance: &AppInstance, call: &Call) -> Result<Option<Uuid>, Fault> {
    let named = deployment::credentials::of(instance)?;
    let Some(credential) = named.get(BOOTSTRAP) else { return Ok(None) };
    let missing = || Fault::terminal("credential_missing", "the key to set the machine up by was revoked");
    if access_credentials::usable_keys(conn, instance.project_id, &[*credential]).await?.is_empty() {
        return Err(missing());
    }
    let allocation = match instance.allocation_id {
        Some(id) => allocations::find(conn, id).await?,
        None => None,
    };
    let Some(allocation) = allocation else { return Ok(None) };
    ssh_trusts::extend(conn, instance.id, allocation.node_id, *credential).await?;
    let key = format!("{}/ssh_trust", call.idempotency_key);
    let asking = Asking { key: &key, ..Asking::by(call, TRUSTED) };
    Ok(Some(tell(conn, allocation.node_id, asking).await?))
}

/// Nobody logs in for the instance's sake any more. Its node is told, whenever it is there to be told; the watch over nodes tells
/// it again where that fails, and whoever ends the instance waits for it.
async fn end_trust(
    conn: &mut PgConnection,
    instance: Uuid,
    by: &str,
    correlation_id: &str,
) -> Result<(), Fault> {
    let Some(node) = ssh_trusts::end(conn, instance).await? else { return Ok(()) };
    let key = format!("{by}/ssh_trust");
    tell(conn, node, Asking { key: &key, epoch: 1, wakes: None, correlation_id }).await?;
    Ok(())
}

/// From here on nobody is the instance any more. The account's row stays, so that history can name it.
pub async fn end_identity(conn: &mut PgConnection, instance: &AppInstance) -> Result<(), Fault> {
    let Some(account) = instance.operator_service_account_id else { return Ok(()) };
    service_account_keys::revoke_all(conn, account).await?;
    service_accounts::set_status(conn, account, "deleted").await?;
    app_instances::set_account(conn, instance.id, None).await?;
    Ok(())
}
