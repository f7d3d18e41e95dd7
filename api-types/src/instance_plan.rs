//! What an action on an instance would do: its steps, what each touches, and what the server would decide.

use domain::entitlement::Effective;
use domain::hourly::HourlyLine;
use domain::placement::{Row, Strategy};
use domain::{ControlPlaneScope, OperatingMode, RuntimeBackend};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app_instance::InstanceArtifact;

/// Asks what an action would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "action": "upgrade", "target_version": "1.1.0" }))]
pub struct PlanInstance {
    pub action: PlannedAction,
    /// An upgrade needs one; a rollback goes to the last good version, unless given.
    #[serde(default)]
    #[schema(pattern = "^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$")]
    pub target_version: Option<String>,
    #[serde(default)]
    pub artifact_id: Option<Uuid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlannedAction {
    Upgrade,
    Rollback,
    Decommission,
}

/// What would happen. Nothing has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InstancePlan {
    /// `deploy`, or the action that was asked about.
    pub action: String,
    /// The workflow that would run.
    pub workflow_kind: String,
    pub steps: Vec<InstancePlanStep>,
    /// How long the nodes usually take for all of it, by this app's own history; null where it has none.
    pub expected_seconds: Option<f64>,
    /// Of a change: whether the old version serves until the new one is healthy.
    pub strategy: Option<Strategy>,
    /// Of a change: the same version and digest serve already. Of a decommission: it is over.
    pub changes_nothing: bool,
    /// Every allocation that was looked at against every predicate; none where nothing would change.
    pub placement: Vec<Row>,
    /// What is left to the project when every layer has had its say.
    pub policy: Option<Effective>,
    /// What the server would decide; null where nothing is decided.
    pub effective: Option<EffectiveInstance>,
    /// Null while the platform has no prices, and where nothing would run.
    pub price_per_hour: Option<InstancePrice>,
}

/// What an hour would cost. Where prices have tiers, the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "currency": "EUR", "amount_minor": 207, "allocation_amount_minor": 300, "lines": [{
        "usage_source": "app_runtime", "usage_unit": "session_seconds", "quantity": 3600, "amount_minor": 207,
        "price_id": "01970000-0000-7000-8000-00000000000a", "price_version": 1
    }]
}))]
pub struct InstancePrice {
    pub currency: String,
    /// What the instance adds. What its app counts itself comes on top.
    pub amount_minor: i64,
    /// What its allocation costs meanwhile, whatever stands on it.
    pub allocation_amount_minor: i64,
    pub lines: Vec<HourlyLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InstancePlanStep {
    pub name: String,
    /// What it does, and to what.
    pub touches: String,
    /// Whether a later failure takes it back.
    pub undo: bool,
    /// How long it usually takes, where nodes have done it for this app before.
    pub expected_seconds: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EffectiveInstance {
    pub version: String,
    pub operating_mode: OperatingMode,
    pub control_plane_scope: ControlPlaneScope,
    pub runtime_backend: RuntimeBackend,
    pub allocation_id: Option<Uuid>,
    #[schema(value_type = Object)]
    pub config: Value,
    #[schema(value_type = Object)]
    pub resources: Value,
    pub artifacts: Vec<InstanceArtifact>,
}
