//! Retiring: nothing new uses the version at once; it ends when its grace period is over and the last instance has let go.
//!
//! Who still refers to it is listed by every look. The last look and the end are one transaction with the version held
//! still, so a deployment that begins meanwhile either comes first and is waited for, or finds the version retired.
//!
//! Whoever wants it now gets it now or not at all: the run looks once more, with the version held still, before it moves.
//! Until the grace period is over a cancel leaves the version deprecated; what comes after is not taken back.

use std::time::Duration;

use activities::Env;
use activities::version_references::ListReferences;
use domain::version_gate::Reference;
use domain::version_status::{VersionAction, VersionStatus};
use domain::{ErrorCode, Permission, PolicyKey};
use engine::{Fault, Halt, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::PgConnection;
use store::app_versions::{self, Advance, AppVersion};
use store::policies::{self, Subject};
use store::{retirements, version_references};
use utoipa::ToSchema;
use uuid::Uuid;

use super::tell::{Moved, tell};
use crate::action::{Action, Refused, Requester};
use crate::told::Told;

/// How long the first look waits for the next; later ones wait twice as long each, up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

pub struct RetireVersion;

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "when": "unused", "reason": "Out of support." }))]
pub struct RetireVersionInput {
    /// Kept with the version and in the audit log.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub reason: Option<String>,
    #[serde(default)]
    pub when: When,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RetireWhen)]
pub enum When {
    /// When the grace period is over and no instance is left.
    #[default]
    Unused,
    /// At once, or not at all: refused while instances are left.
    Now,
}

impl Action for RetireVersion {
    type Subject = AppVersion;
    type Input = RetireVersionInput;
    type Run = Retirement;

    const VERB: &'static str = "retire";
    const OPERATION: &'static str = "retire_version";
    const SUMMARY: &'static str = "Take a version out of use for good, once nothing uses it";
    const PERMISSION: Permission = Permission::AppsVersionManage;
    const REFUSES: &'static [ErrorCode] = &[ErrorCode::VersionInUse];

    fn is_legal(version: &AppVersion) -> bool {
        VersionAction::Retire.leads(version.status).is_some()
    }

    fn reason(input: &RetireVersionInput) -> Option<&str> {
        input.reason.as_deref()
    }

    async fn begin(
        conn: &mut PgConnection,
        version: &AppVersion,
        input: RetireVersionInput,
        by: Requester,
    ) -> Result<Retirement, Refused> {
        let grace_seconds = match input.when {
            When::Now => {
                let references = version_references::of(conn, &version.slug, &version.version).await?;
                if !references.is_empty() {
                    let refused = Refused::no(
                        ErrorCode::VersionInUse,
                        in_use(&version.slug, &version.version, &references),
                    );
                    return Err(refused.with("references", json!(references)));
                }
                0
            }
            When::Unused => grace(conn, version).await?,
        };
        Ok(Retirement { version_id: version.id, when: input.when, grace_seconds, by })
    }
}

fn in_use(slug: &str, version: &str, references: &[Reference]) -> String {
    let names: Vec<String> = references.iter().take(5).map(|one| one.app_instance_id.to_string()).collect();
    let more = if references.len() > names.len() { " and more" } else { "" };
    let names = names.join(", ");
    match references.len() {
        1 => format!("An instance uses {slug} {version}: {names}."),
        count => format!("{count} instances use {slug} {version}: {names}{more}."),
    }
}

/// Nobody could deploy what never left staging, so nobody needs time to move away from it.
async fn grace(conn: &mut PgConnection, version: &AppVersion) -> sqlx::Result<u64> {
    if matches!(version.status, VersionStatus::Draft | VersionStatus::Staged) {
        return Ok(0);
    }
    let (org, project) = version.owner();
    let owner = Subject { org: Some(org), project: Some(project), user: None };
    let seconds = policies::whole_number(conn, PolicyKey::RetireGraceSeconds, owner).await?;
    Ok(u64::try_from(seconds).unwrap_or_default())
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Retirement {
    pub version_id: Uuid,
    #[serde(default)]
    pub when: When,
    pub grace_seconds: u64,
    pub by: Requester,
}

impl Workflow for Retirement {
    const NAME: &'static str = "version.retire";
    const PLAN: &'static [PlannedStep] = &[
        PlannedStep::transact("mark_deprecated"),
        PlannedStep::sleep("grace_period"),
        PlannedStep::activity("list_references"),
        PlannedStep::wait("reference_gone"),
        PlannedStep::transact("mark_retired"),
    ];
    type Env = Env;

    async fn run(&self, run: &mut Run<Env>) -> Result<(), Halt> {
        let told = Told::of(run);
        run.transact("mark_deprecated", |conn| Box::pin(deprecate(conn, self.clone(), told.clone()))).await?;
        run.sleep("grace_period", Duration::from_secs(self.grace_seconds)).await?;
        run.pivot();
        let mut wait = FIRST_WAIT;
        for look in 0_u32.. {
            let references = run.step_for(look, ListReferences { version_id: self.version_id }).await?;
            if references.is_empty() && self.retired(run, look, &told).await? {
                break;
            }
            let _: Option<Value> = run.wait_until("reference_gone", look, wait).await?;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        Ok(())
    }
}

impl Retirement {
    async fn retired(&self, run: &mut Run<Env>, look: u32, told: &Told) -> Result<bool, Halt> {
        run.transact_for("mark_retired", look, |conn| Box::pin(retire(conn, self.clone(), told.clone())))
            .await
    }
}

/// An active version takes no new instances from here on; any other stays as it is. What is to end now and is used does not
/// move: once it is deprecated and unused, nothing can begin to use it.
async fn deprecate(conn: &mut PgConnection, asked: Retirement, told: Told) -> Result<(), Fault> {
    let version = locked(conn, &asked).await?;
    if asked.when == When::Now {
        let references = version_references::of(conn, &version.slug, &version.version).await?;
        if !references.is_empty() {
            return Err(Fault::terminal(
                ErrorCode::VersionInUse.as_str(),
                in_use(&version.slug, &version.version, &references),
            ));
        }
    }
    if VersionAction::Retire.leads(version.status) == Some(VersionStatus::Deprecated) {
        advance(conn, &version, &asked, &told).await?;
    }
    // Should this run be gone before its work is done, another is started from this.
    let (name, grace, input) = (Retirement::NAME, Duration::from_secs(asked.grace_seconds), json!(asked));
    Ok(retirements::ask(conn, name, version.id, &input, grace.as_secs_f64()).await?)
}

/// Whether it is retired now; not while anything refers to it.
async fn retire(conn: &mut PgConnection, asked: Retirement, told: Told) -> Result<bool, Fault> {
    let version = locked(conn, &asked).await?;
    if !version_references::of(conn, &version.slug, &version.version).await?.is_empty() {
        return Ok(false);
    }
    retirements::forget(conn, Retirement::NAME, version.id).await?;
    advance(conn, &version, &asked, &told).await?;
    Ok(true)
}

async fn locked(conn: &mut PgConnection, asked: &Retirement) -> Result<AppVersion, Fault> {
    let version = app_versions::lock(conn, asked.version_id).await?;
    version.ok_or_else(|| Fault::terminal("version_not_found", "the version is gone"))
}

async fn advance(
    conn: &mut PgConnection,
    version: &AppVersion,
    asked: &Retirement,
    told: &Told,
) -> Result<(), Fault> {
    let with = Advance { reason: asked.by.reason.as_deref(), ..Advance::default() };
    let Some(status) = app_versions::advance(conn, version, VersionAction::Retire, with).await? else {
        let why = format!("{} {} is {} and cannot be retired", version.slug, version.version, version.status);
        return Err(Fault::needs_operator("state_conflict", why));
    };
    let moved = Moved { action: VersionAction::Retire, to: status, canary: None };
    tell(conn, version, &moved, &asked.by, told).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_uses_a_version_is_counted_as_people_count() {
        let using = |count: u128| -> Vec<Reference> {
            let one = |number| Reference {
                app_instance_id: Uuid::from_u128(number),
                project_id: Uuid::nil(),
                display_name: "notebook".to_owned(),
                status: "running".to_owned(),
            };
            (1..=count).map(one).collect()
        };
        let said = in_use("hello", "1.0.0", &using(1));
        assert_eq!(said, format!("An instance uses hello 1.0.0: {}.", Uuid::from_u128(1)));
        let said = in_use("hello", "1.0.0", &using(6));
        assert!(said.starts_with("6 instances use hello 1.0.0: ") && said.ends_with(" and more."), "{said}");
    }
}
