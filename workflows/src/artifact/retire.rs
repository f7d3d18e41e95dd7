//! Retiring: nothing new uses the artifact at once; it ends when its grace period is over and the last user has let go,
//! rollback targets and versions included. Its bytes are kept for another grace period and then deleted, unless another
//! registration needs them. Who still uses it is listed by every look.
//!
//! Each decision is one transaction with the artifact held still: a use that begins meanwhile either comes first and is
//! waited for, or finds the artifact retired. Which bytes go is decided, and told to those who register, before any goes.
//!
//! Whoever wants it now gets it now or not at all: the run looks once more, with the artifact held still, before it moves.
//! Until the grace period is over a cancel leaves the artifact deprecated; what comes after is not taken back.

use std::time::Duration;

use activities::Env;
use activities::artifact_uses::ListUses;
use activities::delete_bytes::DeleteBytes;
use activities::list_manifests::ListManifests;
use domain::artifact::{Lifecycle, LifecycleMove};
use domain::{Digest, ErrorCode, EventType, Permission, PolicyKey};
use engine::{Fault, Halt, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::app_artifacts::{self, AppArtifact, Belonging, Totals, Uses};
use store::{policies, retirements};
use utoipa::ToSchema;
use uuid::Uuid;

use super::tell::tell;
use super::{deprecate, is_legal, locked};
use crate::action::{Action, Refused, Requester};
use crate::told::Told;
use crate::version::When;

/// How long the first look waits for the next; later ones wait twice as long each, up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

pub struct RetireArtifact;

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "when": "unused", "reason": "Out of support." }))]
pub struct RetireArtifactInput {
    /// Kept in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
    #[serde(default)]
    pub when: When,
}

impl Action for RetireArtifact {
    type Subject = AppArtifact;
    type Input = RetireArtifactInput;
    type Run = Withdrawal;

    const VERB: &'static str = "retire";
    const OPERATION: &'static str = "retire_artifact";
    const SUMMARY: &'static str = "Take an artifact out of use for good, once nothing uses it";
    const PERMISSION: Permission = Permission::AppsArtifactRetire;
    const REFUSES: &'static [ErrorCode] = &[ErrorCode::VersionInUse];

    fn is_legal(artifact: &AppArtifact) -> bool {
        is_legal::<RetireArtifact>(artifact)
    }

    fn reason(input: &RetireArtifactInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        conn: &mut PgConnection,
        artifact: &AppArtifact,
        input: RetireArtifactInput,
        by: Requester,
    ) -> Result<Withdrawal, Refused> {
        let subject = artifact.policy_subject();
        let kept = policies::whole_number(conn, PolicyKey::RetireGraceSeconds, subject).await?;
        let keep_seconds = u64::try_from(kept).unwrap_or_default();
        let grace_seconds = match input.when {
            When::Unused => keep_seconds,
            When::Now => {
                require_unused(conn, artifact).await?;
                0
            }
        };
        Ok(Withdrawal { artifact_id: artifact.id, when: input.when, grace_seconds, keep_seconds, by })
    }
}

async fn require_unused(conn: &mut PgConnection, artifact: &AppArtifact) -> Result<(), Refused> {
    let uses = app_artifacts::uses(conn, artifact).await?;
    if uses.is_empty() {
        return Ok(());
    }
    Err(Refused::no(ErrorCode::VersionInUse, in_use(&uses)).with("references", json!(uses)))
}

fn in_use(uses: &Uses) -> String {
    let Totals { instances, versions, releases } = uses.totals;
    format!(
        "{instances} instances, {versions} versions and {releases} releases of the platform use the artifact."
    )
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Withdrawal {
    pub artifact_id: Uuid,
    #[serde(default)]
    pub when: When,
    /// Before it ends.
    pub grace_seconds: u64,
    /// After it ended, until its bytes go.
    pub keep_seconds: u64,
    pub by: Requester,
}

impl Workflow for Withdrawal {
    const NAME: &'static str = "artifact.retire";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::transact("mark_deprecated"),
        PlannedStep::sleep("grace_period"),
        PlannedStep::activity("list_uses"),
        PlannedStep::wait("use_ended"),
        PlannedStep::transact("mark_retired"),
        PlannedStep::sleep("keep_bytes"),
        PlannedStep::activity("list_manifests"),
        PlannedStep::transact("let_go"),
        PlannedStep::activity("delete_bytes"),
        PlannedStep::transact("mark_deleted"),
    ];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let (id, told) = (self.artifact_id, Told::of(run));
        run.transact("mark_deprecated", |conn| Box::pin(begin(conn, self.clone(), told.clone()))).await?;
        run.sleep("grace_period", Duration::from_secs(self.grace_seconds)).await?;
        run.pivot();
        let mut wait = FIRST_WAIT;
        for look in 0_u32.. {
            let unused = run.step_for(look, ListUses { artifact_id: id }).await?.is_empty();
            if unused && self.retired(run, look, &told).await? {
                break;
            }
            let _: Option<Value> = run.wait_until("use_ended", look, wait).await?;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        run.sleep("keep_bytes", Duration::from_secs(self.keep_seconds)).await?;
        let all = run.step(ListManifests { artifact_id: id }).await?;
        let going = run.transact("let_go", |conn| Box::pin(let_go(conn, id, all.clone()))).await?;
        run.step(DeleteBytes { artifact_id: id, going }).await?;
        run.transact("mark_deleted", |conn| Box::pin(mark_deleted(conn, id))).await
    }
}

impl Withdrawal {
    async fn retired(&self, run: &mut Run<Env>, look: u32, told: &Told) -> Result<bool, Halt> {
        run.transact_for("mark_retired", look, |conn| Box::pin(retire(conn, self.clone(), told.clone())))
            .await
    }
}

/// Nothing new uses it from here on. What is to end now and is used does not move: once it is deprecated and unused,
/// nothing can begin to use it.
async fn begin(conn: &mut PgConnection, asked: Withdrawal, told: Told) -> Result<(), Fault> {
    if asked.when == When::Now {
        let artifact = locked(conn, asked.artifact_id).await?;
        let uses = app_artifacts::uses(conn, &artifact).await?;
        if !uses.is_empty() {
            return Err(Fault::terminal(ErrorCode::VersionInUse.as_str(), in_use(&uses)));
        }
    }
    deprecate::mark(conn, asked.artifact_id, asked.by.clone(), told).await?;
    remember(conn, &asked).await
}

/// Should this run be gone before its work is done, another is started from this.
async fn remember(conn: &mut PgConnection, asked: &Withdrawal) -> Result<(), Fault> {
    let (name, grace, input) = (Withdrawal::NAME, Duration::from_secs(asked.grace_seconds), json!(asked));
    Ok(retirements::ask(conn, name, asked.artifact_id, &input, grace.as_secs_f64()).await?)
}

/// Whether it is retired now; not while anything uses it.
async fn retire(conn: &mut PgConnection, asked: Withdrawal, told: Told) -> Result<bool, Fault> {
    let artifact = locked(conn, asked.artifact_id).await?;
    let from = artifact.lifecycle()?;
    if from == Lifecycle::Retired {
        return Ok(true);
    }
    if !app_artifacts::uses(conn, &artifact).await?.is_empty() {
        return Ok(false);
    }
    if !app_artifacts::move_lifecycle(conn, artifact.id, from, LifecycleMove::Retire).await? {
        let why = format!("the artifact is {} and cannot be retired", from.as_str());
        return Err(Fault::needs_operator("state_conflict", why));
    }
    retirements::forget(conn, Withdrawal::NAME, artifact.id).await?;
    tell(conn, &artifact, EventType::ArtifactRetired, &asked.by, &told).await?;
    Ok(true)
}

/// The manifests that go with it; those that another registration needs are not among them.
async fn let_go(conn: &mut PgConnection, id: Uuid, all: Vec<Belonging>) -> Result<Vec<Digest>, Fault> {
    let gone = || Fault::needs_operator("artifact_not_found", "the artifact is gone");
    let artifact = app_artifacts::find(conn, id).await?.ok_or_else(gone)?;
    app_artifacts::hold(conn, &artifact.home()).await?;
    let artifact = locked(conn, id).await?;
    let used = !app_artifacts::uses(conn, &artifact).await?.is_empty();
    if used || artifact.lifecycle()? != Lifecycle::Retired {
        let why = "the artifact is used again, or not retired any more: its bytes stay";
        return Err(Fault::needs_operator("still_in_use", why));
    }
    Ok(app_artifacts::let_go(conn, &artifact, &all).await?)
}

async fn mark_deleted(conn: &mut PgConnection, id: Uuid) -> Result<(), Fault> {
    Ok(app_artifacts::mark_deleted(conn, id).await?)
}
