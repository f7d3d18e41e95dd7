//! Deletes the bytes of a retired artifact: the manifests of an image from the registry, whose layers go when it collects
//! its garbage, or a blob from the store. Gone already is well, so it may be repeated; there is no undo.

use std::time::Duration;

use domain::Digest;
use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};
use store::app_artifacts;
use uuid::Uuid;

use crate::Env;
use crate::env::{OUTAGE, blob_name, blob_trouble, registry_trouble};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeleteBytes {
    pub artifact_id: Uuid,
    /// In this order; decided before, with the repository held still: nothing else needs them.
    pub going: Vec<Digest>,
}

impl Activity for DeleteBytes {
    const NAME: &'static str = "delete_bytes";
    const RETRY: Retry = OUTAGE;
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, _call: &Call) -> Result<(), Fault> {
        let mut conn = env.pool().begin().await?;
        let artifact = app_artifacts::find(&mut conn, self.artifact_id).await?;
        drop(conn);
        let Some(artifact) = artifact else { return Ok(()) };
        let Some(name) = &artifact.repository else {
            return env.blobs()?.delete(&blob_name(&artifact)).await.map_err(blob_trouble);
        };
        if self.going.is_empty() {
            return Ok(());
        }
        let repository = env.registry()?.repository(name);
        for digest in &self.going {
            repository.delete_manifest(digest).await.map_err(registry_trouble)?;
        }
        Ok(())
    }
}
