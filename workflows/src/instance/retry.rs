//! Retrying a failed instance: deployed again, after whatever the node still has of it is gone.

use domain::{ErrorCode, InstanceStatus, NodeStatus, Permission};
use serde_json::json;
use sqlx::PgConnection;
use store::app_instance_artifacts::{self, Standing};
use store::app_instances::{self, AppInstance};
use store::deployment::{Purpose, admit, within_budget};
use store::nodes::{self, Node};
use store::{allocations, app_instance_releases, app_versions};

use super::deploy::DeployInstance;
use super::{OperateInstanceInput, word};
use crate::action::{Action, Refused, Requester, Subject, allowed_actions};

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
    if let Some(node) = node_of(conn, instance).await?
        && node.status()? == NodeStatus::Unavailable
    {
        return Err(out_of_reach(instance, &node));
    }
    // What never ran is as new as it was.
    if instance.activated_at.is_none() {
        within_budget(conn, instance.project_id).await?;
    }
    again(conn, instance).await.map_err(Refused::from)
}

/// A retry has the node take away what it has. A silent one would do that when it returns, to what it kept running all the while.
fn out_of_reach(instance: &AppInstance, node: &Node) -> Refused {
    let message = format!(
        "retry is not possible while the node {} is not heard of. What still runs there is taken back by itself once it is; \
         what does not may be retried then.",
        node.name
    );
    Refused::no(ErrorCode::StateConflict, message)
        .with("state", instance.state())
        .with("node_status", NodeStatus::Unavailable.as_str())
        .with("allowed_actions", json!(allowed_out_of_reach(instance)))
}

/// The verbs of the actions that are legal while the instance's node is not heard of.
pub fn allowed_out_of_reach(instance: &AppInstance) -> Vec<&'static str> {
    let mut allowed = allowed_actions(instance);
    allowed.retain(|verb| *verb != Retry::VERB);
    allowed
}

/// Where the instance stands, or is to.
async fn node_of(conn: &mut PgConnection, instance: &AppInstance) -> sqlx::Result<Option<Node>> {
    let Some(allocation) = instance.allocation_id else { return Ok(None) };
    let Some(allocation) = allocations::find(conn, allocation).await? else { return Ok(None) };
    nodes::find(conn, allocation.node_id).await
}

/// What served, or was about to, is the target once more.
pub(super) async fn again(conn: &mut PgConnection, instance: &AppInstance) -> sqlx::Result<DeployInstance> {
    let id = instance.id;
    if app_instance_releases::find(conn, id, Standing::Target).await?.is_none() {
        app_instance_artifacts::promote(conn, id, Standing::Serving, Standing::Target).await?;
        app_instance_releases::promote(conn, id, Standing::Serving, Standing::Target).await?;
    }
    let generation = app_instances::next_generation(conn, id).await?;
    let clears = node_of(conn, instance).await?.map(|node| node.id);
    let returns = instance.activated_at.is_some();
    Ok(DeployInstance { clears, returns, ..DeployInstance::new(id, generation) })
}
