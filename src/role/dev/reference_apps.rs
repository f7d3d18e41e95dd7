//! The reference apps, put into the catalog of every `gpuaas dev` by the route that anybody's app comes in by. A second
//! start finds them there and changes nothing.

use uuid::Uuid;

use super::admin::Admin;
use crate::failure::{Failure, Kind};

const MANIFESTS: [&str; 4] = [
    include_str!("../../../apps/hello/manifest.yaml"),
    include_str!("../../../apps/jupyterlab/manifest.yaml"),
    include_str!("../../../apps/vllm-openai/manifest.yaml"),
    include_str!("../../../apps/slurm-reference/manifest.yaml"),
];

pub async fn register(admin: &Admin, owner: Uuid) -> Result<(), Failure> {
    let route = format!("/admin/apps/manifests?owner_project_id={owner}");
    for manifest in MANIFESTS {
        match admin.post_yaml(&route, manifest).await {
            // The data is of an earlier release and the version has left draft; it keeps what it was staged with.
            Err(failure) if failure.code == Kind::Conflict => {
                tracing::warn!(answer = failure.message, "a reference app stays as it was");
            }
            outcome => {
                outcome?;
            }
        }
    }
    Ok(())
}
