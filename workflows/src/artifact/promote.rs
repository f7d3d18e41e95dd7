//! Promoting: the artifact is looked at afresh, and reaches the channel only if it is trusted now and the channel's gate is
//! open in the very transaction that moves it. Trust is judged by what policy requires; what a gate asks for besides decides
//! about the channel alone, so that nothing in use loses its trust because it may not go further.

use activities::Env;
use activities::verify_artifact::{Looked, VerifyArtifact};
use domain::artifact::{Channel, Evidence, Trust, TrustMove, channel_gate};
use domain::{ActorType, ErrorCode, EventType, Permission, PolicyKey};
use engine::{Fault, Halt, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_artifacts::{self, AppArtifact};
use store::policies;
use utoipa::ToSchema;
use uuid::Uuid;

use super::tell::tell;
use super::{is_legal, locked};
use crate::action::{Action, Refused, Requester};
use crate::told::Told;

pub struct PromoteArtifact;

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "channel": "dev", "reason": "The tests passed." }))]
pub struct PromoteArtifactInput {
    /// Where it goes. Channels are independent of each other unless `artifact.channel_gates` says otherwise.
    pub channel: Channel,
    /// Kept in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
}

impl Action for PromoteArtifact {
    type Subject = AppArtifact;
    type Input = PromoteArtifactInput;
    type Run = Promotion;

    const VERB: &'static str = "promote";
    const OPERATION: &'static str = "promote_artifact";
    const SUMMARY: &'static str = "Verify an artifact afresh and let it reach a channel";
    const PERMISSION: Permission = Permission::AppsArtifactPromote;
    const REFUSES: &'static [ErrorCode] = &[ErrorCode::PolicyDenied, ErrorCode::ArtifactUntrusted];

    fn is_legal(artifact: &AppArtifact) -> bool {
        is_legal::<PromoteArtifact>(artifact)
    }

    fn reason(input: &PromoteArtifactInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        conn: &mut PgConnection,
        artifact: &AppArtifact,
        input: PromoteArtifactInput,
        by: Requester,
    ) -> Result<Promotion, Refused> {
        if artifact.trust()? == Trust::Revoked {
            return Err(Refused::no(ErrorCode::ArtifactUntrusted, "The artifact is revoked, for good."));
        }
        if by.actor_type == ActorType::ServiceAccount {
            machine_may(conn, artifact, input.channel).await?;
        }
        Ok(Promotion { artifact_id: artifact.id, channel: input.channel, by })
    }
}

/// Machines promote only where policy lets them; the other channels are for people.
async fn machine_may(
    conn: &mut PgConnection,
    artifact: &AppArtifact,
    channel: Channel,
) -> Result<(), Refused> {
    let key = PolicyKey::ServiceAccountPromoteChannels;
    let open = policies::resolve(conn, key, artifact.policy_subject()).await?.value;
    if open.as_array().is_some_and(|open| open.iter().any(|one| one == channel.as_str())) {
        return Ok(());
    }
    let message = format!("A service account may not promote to {channel}.");
    Err(Refused::no(ErrorCode::PolicyDenied, message).with("policy", key.as_str()).with("allowed", open))
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Promotion {
    pub artifact_id: Uuid,
    pub channel: Channel,
    pub by: Requester,
}

impl Workflow for Promotion {
    const NAME: &'static str = "artifact.promote";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::activity("verify_artifact"),
        PlannedStep::transact("keep_verdict"),
        PlannedStep::transact("mark_promoted"),
    ];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let told = Told::of(run);
        let look = VerifyArtifact { artifact_id: self.artifact_id, channel: self.channel };
        let looked = run.step(look).await?;
        let good = run
            .transact("keep_verdict", |conn| {
                Box::pin(keep_verdict(conn, self.clone(), looked.evidence.clone(), told.clone()))
            })
            .await?;
        if !good {
            return Err(run.fail(&untrusted(&looked.evidence)).await);
        }
        run.transact("mark_promoted", |conn| {
            Box::pin(mark_promoted(conn, self.clone(), looked.clone(), told.clone()))
        })
        .await
    }
}

fn untrusted(evidence: &Evidence) -> Fault {
    let why: Vec<&str> = evidence.failures().map(|check| check.message.as_str()).collect();
    Fault::terminal("artifact_untrusted", why.join("; "))
}

/// Whether it is trusted now. Bad evidence is kept too: it is what people look at next. A verdict that is the same as
/// before is news to nobody.
async fn keep_verdict(
    conn: &mut PgConnection,
    asked: Promotion,
    evidence: Evidence,
    told: Told,
) -> Result<bool, Fault> {
    let artifact = locked(conn, asked.artifact_id).await?;
    let (from, good) = (artifact.trust()?, evidence.is_good());
    let (act, to, kind) = if good {
        (TrustMove::Pass, Trust::Verified, EventType::ArtifactVerified)
    } else {
        (TrustMove::Fail, Trust::FailedVerification, EventType::ArtifactVerificationFailed)
    };
    let found = serde_json::to_value(&evidence).unwrap_or_default();
    if !app_artifacts::move_trust(conn, artifact.id, from, act, Some(&found)).await? {
        return Err(Fault::terminal("artifact_untrusted", "the artifact was revoked meanwhile"));
    }
    if from != to {
        tell(conn, &artifact, kind, &asked.by, &told).await?;
    }
    Ok(good)
}

/// By the gate as it is now, and by what was found a moment ago.
async fn mark_promoted(
    conn: &mut PgConnection,
    asked: Promotion,
    looked: Looked,
    told: Told,
) -> Result<(), Fault> {
    let artifact = locked(conn, asked.artifact_id).await?;
    if artifact.trust()? != Trust::Verified {
        let why = format!("the artifact is {} by now", artifact.trust_state);
        return Err(Fault::terminal("artifact_untrusted", why));
    }
    let gates = policies::resolve(conn, PolicyKey::ChannelGates, artifact.policy_subject()).await?.value;
    let gate = channel_gate::of(&gates, asked.channel);
    let shut = gate.judge(&artifact.channels, &looked.evidence, &looked.missing);
    if !shut.is_empty() {
        return Err(Fault::terminal("policy_denied", shut.join("; ")));
    }
    if !app_artifacts::promote(conn, artifact.id, artifact.lifecycle()?, asked.channel).await? {
        let why = format!("the artifact is {} and cannot be promoted", artifact.lifecycle_state);
        return Err(Fault::terminal("state_conflict", why));
    }
    tell(conn, &artifact, EventType::ArtifactPromoted, &asked.by, &told).await
}
