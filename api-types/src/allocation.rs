//! An allocation: the part of a node that a project may use.

use chrono::{DateTime, Utc};
use domain::{AllocationStatus, CapacityShape};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::workflow::WorkflowHandle;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Allocation {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub node_id: Uuid,
    pub capacity_shape: CapacityShape,
    pub sku: String,
    /// The kind of its GPUs; `null` without any.
    pub accelerator: Option<String>,
    pub gpu_count: i32,
    pub cpu_cores: i32,
    pub memory_gib: i32,
    pub status: AllocationStatus,
    pub correlation_id: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub activated_at: Option<DateTime<Utc>>,
    pub released_at: Option<DateTime<Utc>>,
}

/// The allocation together with the run that ends what stands on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllocationWithRun {
    #[serde(flatten)]
    pub allocation: Allocation,
    pub workflow: WorkflowHandle,
}

/// What became of an allocation that was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReleasedAllocation {
    #[serde(flatten)]
    pub allocation: Allocation,
    /// The run that ended what stood on it, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<WorkflowHandle>,
}

/// What is left out is decided by the server: a whole machine has all the node has, a slice no GPU, one core, one GiB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "project_id": "01970000-0000-7000-8000-000000000002", "node_id": "01970000-0000-7000-8000-000000000007",
    "capacity_shape": "gpu_slice", "gpu_count": 1, "cpu_cores": 8, "memory_gib": 64
}))]
pub struct NewAllocation {
    pub project_id: Uuid,
    pub node_id: Uuid,
    pub capacity_shape: CapacityShape,
    /// What it is sold as; the model of the node's GPUs unless given, or `cpu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100)]
    pub sku: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 64)]
    pub gpu_count: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 4096)]
    pub cpu_cores: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 65536)]
    pub memory_gib: Option<i32>,
    /// Kept in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}
