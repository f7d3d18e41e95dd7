//! Deprecating: what runs goes on, and nothing new begins.

use activities::Env;
use domain::artifact::LifecycleMove;
use domain::{EventType, Permission};
use engine::{Fault, Halt, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_artifacts::{self, AppArtifact};
use uuid::Uuid;

use super::tell::tell;
use super::{MoveArtifactInput, is_legal, locked};
use crate::action::{Action, Refused, Requester};
use crate::told::Told;

pub struct DeprecateArtifact;

impl Action for DeprecateArtifact {
    type Subject = AppArtifact;
    type Input = MoveArtifactInput;
    type Run = Deprecation;

    const VERB: &'static str = "deprecate";
    const OPERATION: &'static str = "deprecate_artifact";
    const SUMMARY: &'static str = "Let nothing new use an artifact";
    const PERMISSION: Permission = Permission::AppsArtifactDeprecate;

    fn is_legal(artifact: &AppArtifact) -> bool {
        is_legal::<DeprecateArtifact>(artifact)
    }

    fn reason(input: &MoveArtifactInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        _: &mut PgConnection,
        artifact: &AppArtifact,
        _: MoveArtifactInput,
        by: Requester,
    ) -> Result<Deprecation, Refused> {
        Ok(Deprecation { artifact_id: artifact.id, by })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deprecation {
    pub artifact_id: Uuid,
    pub by: Requester,
}

impl Workflow for Deprecation {
    const NAME: &'static str = "artifact.deprecate";
    const PLAN: &'static [PlannedStep] = &[PlannedStep::transact("mark_deprecated")];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let told = Told::of(run);
        run.transact("mark_deprecated", |conn| {
            Box::pin(mark(conn, self.artifact_id, self.by.clone(), told.clone()))
        })
        .await
    }
}

/// Deprecated already stays as it is, and is not told again.
pub(super) async fn mark(conn: &mut PgConnection, id: Uuid, by: Requester, told: Told) -> Result<(), Fault> {
    let artifact = locked(conn, id).await?;
    let from = artifact.lifecycle()?;
    if !app_artifacts::move_lifecycle(conn, id, from, LifecycleMove::Deprecate).await? {
        let why = format!("the artifact is {} and cannot be deprecated", from.as_str());
        return Err(Fault::terminal("state_conflict", why));
    }
    if from.is_deployable() {
        tell(conn, &artifact, EventType::ArtifactDeprecated, &by, &told).await?;
    }
    Ok(())
}
