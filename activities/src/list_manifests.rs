//! Lists every manifest that belongs to an artifact, in the order in which they may be deleted: what vouches for each
//! first, together with what it vouches for. It only reads, so it may be repeated and has nothing to undo.

use std::time::Duration;

use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};
use store::app_artifacts::{self, Belonging};
use uuid::Uuid;

use crate::Env;
use crate::env::{OUTAGE, registry_trouble};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListManifests {
    pub artifact_id: Uuid,
}

impl Activity for ListManifests {
    const NAME: &'static str = "list_manifests";
    const RETRY: Retry = OUTAGE;
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Env = Env;
    type Output = Vec<Belonging>;

    async fn run(&self, env: &Env, _call: &Call) -> Result<Vec<Belonging>, Fault> {
        let mut conn = env.pool().begin().await?;
        let Some(artifact) = app_artifacts::find(&mut conn, self.artifact_id).await? else {
            return Ok(Vec::new());
        };
        let manifests = app_artifacts::manifests(&mut conn, artifact.id).await?;
        drop(conn);
        let Some(name) = &artifact.repository else { return Ok(Vec::new()) };
        let repository = env.registry()?.repository(name);
        let mut all = Vec::new();
        for digest in &manifests {
            let vouching = repository.beside(digest).await.map_err(registry_trouble)?;
            let of = |manifest| Belonging { manifest, vouches_for: Some(digest.clone()) };
            all.extend(vouching.into_iter().map(of));
        }
        all.extend(manifests.into_iter().map(|manifest| Belonging { manifest, vouches_for: None }));
        Ok(all)
    }
}
