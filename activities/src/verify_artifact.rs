//! Looks at an artifact and what lies beside it in the registry, by what policy and the channel's gate require now. It only
//! reads, so it may be repeated and has nothing to undo. A registry that is away is waited for.

use std::time::Duration;

use clients::trust;
use domain::PolicyKey;
use domain::artifact::{Channel, Evidence, channel_gate};
use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};
use store::{app_artifacts, policies, trust_demands};
use uuid::Uuid;

use crate::Env;
use crate::env::{OUTAGE, blob_name, blob_trouble, registry_trouble};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VerifyArtifact {
    pub artifact_id: Uuid,
    /// Where it is to go: that channel's gate may ask for more.
    pub channel: Channel,
}

impl Activity for VerifyArtifact {
    const NAME: &'static str = "verify_artifact";
    const RETRY: Retry = OUTAGE;
    /// A blob is read to its end, however large it is.
    const TIMEOUT: Duration = Duration::from_secs(3600);
    type Env = Env;
    type Output = Evidence;

    async fn run(&self, env: &Env, _call: &Call) -> Result<Evidence, Fault> {
        let mut conn = env.pool().begin().await?;
        let artifact = app_artifacts::find(&mut conn, self.artifact_id).await?;
        let artifact =
            artifact.ok_or_else(|| Fault::terminal("artifact_not_found", "the artifact is gone"))?;
        let mut demands = trust_demands::of(&mut conn, &artifact).await?;
        let subject = artifact.policy_subject();
        let gates = policies::resolve(&mut conn, PolicyKey::ChannelGates, subject).await?.value;
        let gate = channel_gate::of(&gates, self.channel);
        demands.signature |= gate.signature;
        demands.provenance |= gate.provenance;
        drop(conn);
        let digest = artifact.digest()?;
        let Some(repository) = &artifact.repository else {
            let (name, signature) = (blob_name(&artifact), artifact.signature.as_deref());
            let looked = trust::examine_blob(env.blobs()?, &name, &digest, signature, &demands).await;
            return looked.map_err(blob_trouble);
        };
        let repository = env.registry()?.repository(repository);
        trust::examine(&repository, &digest, &demands).await.map_err(registry_trouble)
    }
}
