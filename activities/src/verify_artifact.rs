//! Looks at an artifact and what lies beside it in the registry, by what policy and the channel's gate require now. It only
//! reads, so it may be repeated and has nothing to undo. A registry that is away is waited for.

use std::time::Duration;

use clients::trust::{self, Vouchers};
use domain::PolicyKey;
use domain::artifact::{Channel, CheckResult, Evidence, TrustDemands, channel_gate};
use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};
use store::app_artifacts::{self, AppArtifact};
use store::{policies, trust_demands};
use uuid::Uuid;

use crate::Env;
use crate::env::{OUTAGE, blob_name, blob_trouble, registry_trouble};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VerifyArtifact {
    pub artifact_id: Uuid,
    /// Where it is to go: that channel's gate may ask for more.
    pub channel: Channel,
}

/// What was found, and whom it concerns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Looked {
    /// By what policy requires: the verdict on the artifact.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// What only the gate asks for, and is not there. It keeps the gate shut and takes no trust away.
    #[serde(default)]
    pub missing: Vec<CheckResult>,
}

impl Activity for VerifyArtifact {
    const NAME: &'static str = "verify_artifact";
    const RETRY: Retry = OUTAGE;
    /// A blob is read to its end, however large it is.
    const TIMEOUT: Duration = Duration::from_secs(3600);
    type Env = Env;
    type Output = Looked;

    async fn run(&self, env: &Env, _call: &Call) -> Result<Looked, Fault> {
        let mut conn = env.pool().begin().await?;
        let artifact = app_artifacts::find(&mut conn, self.artifact_id).await?;
        let artifact =
            artifact.ok_or_else(|| Fault::terminal("artifact_not_found", "the artifact is gone"))?;
        let required = trust_demands::of(&mut conn, &artifact).await?;
        let subject = artifact.policy_subject();
        let gates = policies::resolve(&mut conn, PolicyKey::ChannelGates, subject).await?.value;
        drop(conn);
        let gate = channel_gate::of(&gates, self.channel);
        let demands = TrustDemands {
            signature: required.signature || gate.signature,
            provenance: required.provenance || gate.provenance,
            ..required.clone()
        };
        let (evidence, missing) = examine(env, &artifact, &demands).await?.required_by(&required);
        Ok(Looked { evidence, missing })
    }
}

async fn examine(env: &Env, artifact: &AppArtifact, demands: &TrustDemands) -> Result<Evidence, Fault> {
    let digest = artifact.digest()?;
    let Some(repository) = &artifact.repository else {
        let name = blob_name(artifact);
        let vouchers =
            Vouchers { signature: artifact.signature.as_deref(), provenance: artifact.provenance.as_deref() };
        let looked = trust::examine_blob(env.blobs()?, &name, &digest, vouchers, demands).await;
        return looked.map_err(blob_trouble);
    };
    let repository = env.registry()?.repository(repository);
    trust::examine(&repository, &digest, demands).await.map_err(registry_trouble)
}
