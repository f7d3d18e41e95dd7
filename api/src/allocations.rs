//! `P/allocations` and `A/allocations`: the parts of nodes that projects may use. Administrators give and take them back;
//! projects read their own.

mod create;
mod read;
mod release;

pub(crate) use create::create;
pub(crate) use read::{list, show};
pub(crate) use release::release;

use api_types::Allocation;
use store::allocations as table;

use crate::error::ApiError;

fn shown(row: table::Allocation) -> Result<Allocation, ApiError> {
    let (status, capacity_shape) = (row.status()?, row.shape()?);
    Ok(Allocation {
        id: row.id,
        org_id: row.org_id,
        project_id: row.project_id,
        node_id: row.node_id,
        capacity_shape,
        sku: row.sku,
        accelerator: row.accelerator,
        gpu_count: row.gpu_count,
        cpu_cores: row.cpu_cores,
        memory_gib: row.memory_gib,
        status,
        correlation_id: row.correlation_id,
        created_at: row.created_at,
        updated_at: row.updated_at,
        activated_at: row.activated_at,
        released_at: row.released_at,
    })
}
