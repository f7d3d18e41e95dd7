//! Retrying a failed instance: deployed again, after whatever the node still has of it is gone.

use domain::{ErrorCode, InstanceStatus, Permission};
use sqlx::PgConnection;
use store::app_instance_artifacts::{self, Standing};
use store::app_instances::{self, AppInstance};
use store::deployment::{Purpose, admit};
use store::{allocations, app_instance_releases, app_versions};

use super::deploy::DeployInstance;
use super::{OperateInstanceInput, word};
use crate::action::{Action, Refused, Requester};

pub struct Retry;

impl Action for Retry {
    type Subject = AppInstance;
    type Input = OperateInstanceInput;
    type Run = DeployInstance;

    const VERB: &'static str = "retry";
    const OPERATION: &'static str = "retry_app_instance";
    const SUMMARY: &'static str = "Deploy a failed instance again";
    const PERMISSION: Permission = Permission::AppsInstanceOperate;
    const REFUSES: &'static [ErrorCode] =
        &[ErrorCode::EntitlementRequired, ErrorCode::PolicyDenied, ErrorCode::VersionNotFound];

    /// What failed while it was taken down is decommissioned again instead.
    fn is_legal(instance: &AppInstance) -> bool {
        let resumes = instance.failed_during.as_deref() == Some(InstanceStatus::Deploying.as_str());
        instance.status().is_ok_and(|status| status == InstanceStatus::Failed) && resumes
    }

    fn reason(input: &OperateInstanceInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        conn: &mut PgConnection,
        instance: &AppInstance,
        _: OperateInstanceInput,
        _: Requester,
    ) -> Result<DeployInstance, Refused> {
        admitted_again(conn, instance).await
    }
}

/// If everything still allows it.
pub(super) async fn admitted_again(
    conn: &mut PgConnection,
    instance: &AppInstance,
) -> Result<DeployInstance, Refused> {
    let version = app_versions::hold_for_use(conn, &instance.app_slug, &instance.version).await?;
    let gone = || Refused::no(ErrorCode::VersionNotFound, "The version is gone from the catalog.");
    let version = version.ok_or_else(gone)?;
    let pair = (Some(word(&instance.operating_mode)?), Some(word(&instance.control_plane_scope)?));
    let place = (instance.org_id, instance.project_id);
    let admitted = admit(conn, place, &version, pair, Purpose::Return).await?;
    admitted.allows_again(&instance.resources)?;
    again(conn, instance).await.map_err(Refused::from)
}

/// What served, or was about to, is the target once more.
pub(super) async fn again(conn: &mut PgConnection, instance: &AppInstance) -> sqlx::Result<DeployInstance> {
    let id = instance.id;
    if app_instance_releases::find(conn, id, Standing::Target).await?.is_none() {
        app_instance_artifacts::promote(conn, id, Standing::Serving, Standing::Target).await?;
        app_instance_releases::promote(conn, id, Standing::Serving, Standing::Target).await?;
    }
    let generation = app_instances::next_generation(conn, id).await?;
    let allocation = match instance.allocation_id {
        Some(allocation) => allocations::find(conn, allocation).await?,
        None => None,
    };
    let clears = allocation.map(|allocation| allocation.node_id);
    let returns = instance.activated_at.is_some();
    Ok(DeployInstance { clears, returns, ..DeployInstance::new(id, generation) })
}
