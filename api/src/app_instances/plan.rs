//! `POST P/app-instances/plan` and `/{id}/plan`: what would happen, decided by the same code as the action itself, in a
//! transaction that is given up. What the action would refuse is refused here the same way.

use api_types::{
    EffectiveInstance, InstanceArtifact, InstancePlan, InstancePlanStep, InstancePrice, NewAppInstance,
    PlanInstance, PlannedAction,
};
use axum::extract::State as Shared;
use domain::placement::{Grant, Strategy};
use domain::{
    ControlPlaneScope, ErrorCode, InstanceStatus, OperatingMode, RuntimeBackend, UsageSource, hourly,
};
use sqlx::PgConnection;
use store::app_instance_artifacts::UsedArtifact;
use store::app_instance_releases::Release;
use store::app_instances::AppInstance;
use store::deployment::{Change, Purpose, To, decide, decide_change};
use store::{allocations, node_tasks, prices, server};
use uuid::Uuid;
use workflows::instance::decommission::Decommission;
use workflows::instance::{Explained, Rollback, Upgrade, explain};

use super::create::{held_version, wish};
use super::{found, newer, place};
use crate::action::may;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::node_agent::Said;
use crate::params::Params;
use crate::path::Id;
use crate::state::State;

const REFUSES: &[ErrorCode] = &[
    ErrorCode::VersionNotFound,
    ErrorCode::ArtifactNotFound,
    ErrorCode::AccessCredentialNotFound,
    ErrorCode::EntitlementRequired,
    ErrorCode::PolicyDenied,
    ErrorCode::StateConflict,
    ErrorCode::OperationInProgress,
    ErrorCode::ArtifactUntrusted,
    ErrorCode::ArtifactNotDeployable,
    ErrorCode::PlacementUnsatisfiable,
];

pub(crate) fn plan_new() -> Endpoint {
    Endpoint::new("plan_app_instance", "What deploying a version would do", plan_create)
        .body::<NewAppInstance>()
        .changes_nothing()
        .answers::<InstancePlan>(
            200,
            "The steps, the placement matrix and every value as it would be decided.",
        )
        .refuses(&[ErrorCode::AppNotFound])
        .refuses(REFUSES)
}

pub(crate) fn plan() -> Endpoint {
    Endpoint::new("plan_app_instance_action", "What an action on the instance would do", plan_action)
        .body::<PlanInstance>()
        .changes_nothing()
        .answers::<InstancePlan>(200, "The steps, and what would change.")
        .refuses(&[ErrorCode::AppInstanceNotFound])
        .refuses(REFUSES)
}

async fn plan_create(
    Shared(state): Shared<State>,
    caller: Caller,
    params: Params,
    Said(asked): Said<NewAppInstance>,
) -> Result<Json<InstancePlan>, ApiError> {
    params.finish()?;
    let mut tx = state.write().await?;
    let version = held_version(&mut tx, &asked.app_slug, &asked.version).await?;
    let decision = decide(&mut tx, place(&caller)?, &version, &wish(&asked), Purpose::New).await?;
    let mut plan = steps(&mut tx, "deploy", &version.slug, Extent::All).await?;
    let at = Some(decision.allocation_id);
    plan.price_per_hour = price(&mut tx, &version.slug, at, &decision.release).await?;
    tx.rollback().await?;
    let admitted = decision.admitted;
    let modes =
        (admitted.operating_mode, admitted.control_plane_scope, admitted.manifest.version.runtime_backend);
    plan.effective = Some(effective(decision.release, decision.images, Some(decision.allocation_id), modes));
    plan.placement = decision.matrix;
    plan.policy = Some(admitted.policy);
    Ok(Json(plan))
}

async fn plan_action(
    Shared(state): Shared<State>,
    caller: Caller,
    id: Id,
    params: Params,
    Said(asked): Said<PlanInstance>,
) -> Result<Json<InstancePlan>, ApiError> {
    params.finish()?;
    let purpose = match asked.action {
        PlannedAction::Upgrade if asked.target_version.is_none() => {
            return Err(ApiError::invalid("/target_version", "is required for an upgrade"));
        }
        PlannedAction::Upgrade => Some(("upgrade", Purpose::New)),
        PlannedAction::Rollback => Some(("rollback", Purpose::Return)),
        PlannedAction::Decommission => None,
    };
    let mut tx = state.write().await?;
    let instance = found(&mut tx, &caller, id).await?;
    match asked.action {
        PlannedAction::Upgrade => may::<Upgrade>(&mut tx, &instance).await?,
        PlannedAction::Rollback => may::<Rollback>(&mut tx, &instance).await?,
        PlannedAction::Decommission => may::<Decommission>(&mut tx, &instance).await?,
    }
    let plan = match purpose {
        None => end(&mut tx, &instance).await?,
        Some((verb, purpose)) => {
            let to = To { version: asked.target_version, artifact_id: asked.artifact_id, purpose };
            let change = decide_change(&mut tx, &instance, &to).await?;
            let mut plan = steps(&mut tx, verb, &instance.app_slug, extent(&change)).await?;
            let at = instance.allocation_id;
            plan.price_per_hour = price(&mut tx, &instance.app_slug, at, &change.release).await?;
            changed(plan, &instance, change)?
        }
    };
    tx.rollback().await?;
    Ok(Json(plan))
}

/// What has ended is not ended again: the action would answer with the run that did it.
async fn end(conn: &mut PgConnection, instance: &AppInstance) -> Result<InstancePlan, ApiError> {
    let changes_nothing = instance.status()? == InstanceStatus::Decommissioned;
    let extent = if changes_nothing { Extent::Nothing } else { Extent::All };
    let plan = steps(conn, "decommission", &instance.app_slug, extent).await?;
    Ok(InstancePlan { changes_nothing, ..plan })
}

fn changed(plan: InstancePlan, instance: &AppInstance, change: Change) -> Result<InstancePlan, ApiError> {
    let modes = (
        instance.operating_mode.parse().map_err(newer)?,
        instance.control_plane_scope.parse().map_err(newer)?,
        instance.runtime_backend.parse().map_err(newer)?,
    );
    Ok(InstancePlan {
        strategy: Some(change.strategy),
        changes_nothing: change.is_nothing,
        placement: change.matrix,
        policy: Some(change.policy),
        effective: Some(effective(change.release, change.images, instance.allocation_id, modes)),
        ..plan
    })
}

fn effective(
    release: Release,
    images: Vec<UsedArtifact>,
    allocation_id: Option<Uuid>,
    (operating_mode, control_plane_scope, runtime_backend): (
        OperatingMode,
        ControlPlaneScope,
        RuntimeBackend,
    ),
) -> EffectiveInstance {
    let artifact = |one: UsedArtifact| InstanceArtifact {
        name: one.name,
        artifact_id: one.artifact_id,
        digest: one.digest,
    };
    EffectiveInstance {
        version: release.version,
        operating_mode,
        control_plane_scope,
        runtime_backend,
        allocation_id,
        config: release.config,
        resources: release.resources,
        artifacts: images.into_iter().map(artifact).collect(),
    }
}

/// By the prices that hold now; none where there are none at all.
async fn price(
    conn: &mut PgConnection,
    app_slug: &str,
    allocation: Option<Uuid>,
    release: &Release,
) -> Result<Option<InstancePrice>, ApiError> {
    let Some(currency) = prices::currency(conn).await? else { return Ok(None) };
    let allocation = match allocation {
        Some(allocation) => allocations::find(conn, allocation).await?,
        None => None,
    };
    let grant: Grant =
        serde_json::from_value(release.resources.clone()).map_err(|error| ApiError::internal(&error))?;
    let wanted = hourly::Wanted {
        app_slug,
        sku: allocation.as_ref().map(|allocation| allocation.sku.as_str()),
        gpu_count: grant.gpu_count,
        at: server::now(conn).await?,
    };
    let lines = hourly::lines(&prices::all(conn).await?, &wanted);
    let sum = |source: UsageSource| {
        lines.iter().filter(|line| line.usage_source == source).map(|line| line.amount_minor).sum()
    };
    Ok(Some(InstancePrice {
        currency,
        amount_minor: sum(UsageSource::AppRuntime),
        allocation_amount_minor: sum(UsageSource::Allocation),
        lines,
    }))
}

/// The steps with what they usually take, where they happen; what is decided comes on top.
async fn steps(
    conn: &mut PgConnection,
    action: &str,
    app_slug: &str,
    extent: Extent,
) -> Result<InstancePlan, ApiError> {
    let usual = node_tasks::usual_seconds(conn, app_slug).await?;
    let unknown = || ApiError::internal(&"an action without a workflow");
    let (kind, explained) = explain(action).ok_or_else(unknown)?;
    let took = |task: &str| usual.iter().find(|(kind, _)| kind == task).map(|(_, seconds)| *seconds);
    let steps: Vec<InstancePlanStep> = explained
        .into_iter()
        .map(|step| InstancePlanStep {
            name: step.name.to_owned(),
            touches: step.touches.to_owned(),
            undo: step.undo,
            expected_seconds: step.task.filter(|_| extent.includes(&step)).and_then(took),
        })
        .collect();
    let known: Vec<f64> = steps.iter().filter_map(|step| step.expected_seconds).collect();
    Ok(InstancePlan {
        action: action.to_owned(),
        workflow_kind: kind.to_owned(),
        expected_seconds: (!known.is_empty()).then(|| known.iter().sum()),
        steps,
        strategy: None,
        changes_nothing: false,
        placement: Vec::new(),
        policy: None,
        effective: None,
        price_per_hour: None,
    })
}

/// How much of an action's steps happens.
#[derive(Clone, Copy)]
enum Extent {
    All,
    /// Nothing is stopped first.
    Beside,
    /// It ends before it does anything.
    Nothing,
}

impl Extent {
    fn includes(self, step: &Explained) -> bool {
        match self {
            Extent::All => true,
            Extent::Beside => !step.stops_first,
            Extent::Nothing => false,
        }
    }
}

fn extent(change: &Change) -> Extent {
    match change.strategy {
        _ if change.is_nothing => Extent::Nothing,
        Strategy::SideBySide => Extent::Beside,
        Strategy::StopThenStart => Extent::All,
    }
}
