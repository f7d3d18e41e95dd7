//! Deletes manifests from the registry that were condemned before: nothing needs them, and nobody registers them meanwhile.
//! Gone already is well, so it may be repeated; there is no undo.

use std::time::Duration;

use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};
use store::registry_pushes::Stray;

use crate::Env;
use crate::env::registry_trouble;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DeleteStrays {
    pub condemned: Vec<Stray>,
}

impl Activity for DeleteStrays {
    const NAME: &'static str = "delete_strays";
    /// About half an hour of a registry that does not answer; the next look finds the same.
    const RETRY: Retry = Retry::times(40).at_most(Duration::from_secs(60));
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, _call: &Call) -> Result<(), Fault> {
        for stray in &self.condemned {
            let Ok(digest) = stray.digest.parse() else { continue };
            let repository = env.registry()?.repository(&stray.repository);
            repository.delete_manifest(&digest).await.map_err(registry_trouble)?;
        }
        Ok(())
    }
}
