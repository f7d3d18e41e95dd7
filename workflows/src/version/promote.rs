//! `version.promote`: one move of a version along the rollout. Its gates are judged twice: once as a step, which people
//! read, and again in the transaction that moves it, so that nothing slips in between. A version with tests of its own
//! passes them before it goes to canary.

use activities::Env;
use activities::version_gates::{CheckGates, judge};
use domain::canary::Canary;
use domain::version_status::{VersionAction, VersionStatus};
use engine::{Fault, Halt, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_versions::{self, Advance, AppVersion};
use store::version_artifacts;
use uuid::Uuid;

use super::smoke;
use super::tell::{Moved, tell};
use crate::action::Requester;
use crate::instance::deploy::DeployInstance;
use crate::told::Told;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PromoteVersion {
    pub version_id: Uuid,
    pub app_slug: String,
    pub version: String,
    pub action: VersionAction,
    /// Whom the canary is open to, where the move begins or widens one.
    pub canary: Option<Canary>,
    /// Whether the app's other active versions are deprecated in the same moment.
    pub supersede: bool,
    pub by: Requester,
    /// The instance that the version's own tests would run on, where the move begins with them.
    #[serde(default)]
    pub throwaway: Option<DeployInstance>,
}

impl PromoteVersion {
    pub(super) fn new(version: &AppVersion, action: VersionAction, by: Requester) -> PromoteVersion {
        PromoteVersion {
            version_id: version.id,
            app_slug: version.slug.clone(),
            version: version.version.clone(),
            action,
            canary: None,
            supersede: false,
            by,
            throwaway: (action == VersionAction::Canary).then(DeployInstance::throwaway),
        }
    }
}

impl Workflow for PromoteVersion {
    const NAME: &'static str = "version.promote";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::activity("check_gates"),
        PlannedStep::undoable("open_throwaway"),
        PlannedStep::child("instance.deploy"),
        PlannedStep::activity("ask_workload"),
        PlannedStep::wait("smoke_asked"),
        PlannedStep::transact("record_smoke"),
        PlannedStep::child("instance.decommission"),
        PlannedStep::transact("move_version"),
    ];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let gates = run.step(CheckGates { version_id: self.version_id, action: self.action }).await?;
        if let Some(throwaway) = self.throwaway.as_ref().filter(|_| smoke::is_due(&gates)) {
            self.smoke(run, throwaway).await?;
        }
        let told = Told::of(run);
        let status = run
            .transact("move_version", |conn| Box::pin(move_version(conn, self.clone(), told.clone())))
            .await?;
        run.output(&status).await
    }
}

async fn move_version(
    conn: &mut PgConnection,
    asked: PromoteVersion,
    told: Told,
) -> Result<VersionStatus, Fault> {
    let version = app_versions::lock(conn, asked.version_id).await?;
    let version = version.ok_or_else(|| Fault::terminal("version_not_found", "the version is gone"))?;
    judge(conn, &version, asked.action).await?;
    if asked.action == VersionAction::Stage {
        version_artifacts::freeze(conn, &version).await?;
    }
    let status = advance(conn, &version, asked.action, &asked, &told).await?;
    if asked.supersede {
        for other in app_versions::active_besides(conn, version.app_id, version.id).await? {
            if let Some(other) = app_versions::lock(conn, other).await? {
                let superseded = by_successor(&asked);
                advance(conn, &other, VersionAction::Deprecate, &superseded, &told).await?;
            }
        }
    }
    Ok(status)
}

/// Why the others are deprecated.
fn by_successor(asked: &PromoteVersion) -> PromoteVersion {
    let reason = Some(format!("Superseded by {}.", asked.version));
    PromoteVersion { canary: None, by: Requester { reason, ..asked.by.clone() }, ..asked.clone() }
}

async fn advance(
    conn: &mut PgConnection,
    version: &AppVersion,
    action: VersionAction,
    asked: &PromoteVersion,
    told: &Told,
) -> Result<VersionStatus, Fault> {
    let with = Advance { canary: asked.canary.as_ref(), reason: asked.by.reason.as_deref(), evidence: None };
    let Some(status) = app_versions::advance(conn, version, action, with).await? else {
        let why =
            format!("{action} is not legal: {} {} is {}", version.slug, version.version, version.status);
        return Err(Fault::terminal("state_conflict", why));
    };
    let moved = Moved { action, to: status, canary: asked.canary.as_ref() };
    tell(conn, version, &moved, &asked.by, told).await?;
    Ok(status)
}
