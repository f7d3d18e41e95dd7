//! How the deployments of a canary went. Whoever deploys tells it here, once per run; a canary that fails too often goes
//! back to staged in the very transaction that told so.

use domain::canary::{Samples, Tolerance, Verdict, judge};
use domain::event::{NewEvent, Thread};
use domain::version_status::{VersionAction, VersionStatus};
use domain::{EventType, PolicyKey};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::app_versions::{self, Advance, AppVersion};
use crate::policies::{self, Subject};
use crate::{audit, outbox};

/// How one deployment ended.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    pub run_id: Uuid,
    /// Whose deployment it was.
    pub project_id: Uuid,
    pub failed: bool,
    pub thread: Thread<'a>,
}

/// Counts a deployment of the version, and halts its canary where too many have failed. Answers whether it did. A
/// deployment of a version that is not in canary says nothing about a canary.
pub async fn record(conn: &mut PgConnection, version: Uuid, outcome: Outcome<'_>) -> sqlx::Result<bool> {
    let Some(version) = app_versions::lock(conn, version).await? else { return Ok(false) };
    if version.status != VersionStatus::Canary {
        return Ok(false);
    }
    sqlx::query!(
        "insert into canary_samples (version_id, round, run_id, project_id, failed) values ($1, $2, $3, $4, $5)
         on conflict do nothing",
        version.id,
        version.canary_round,
        outcome.run_id,
        outcome.project_id,
        outcome.failed
    )
    .execute(&mut *conn)
    .await?;
    let (samples, tolerance) = (of(conn, &version).await?, tolerance(conn, &version).await?);
    if judge(samples, tolerance) != Verdict::Failed {
        return Ok(false);
    }
    halt(conn, &version, samples, tolerance, outcome).await
}

async fn halt(
    conn: &mut PgConnection,
    version: &AppVersion,
    samples: Samples,
    tolerance: Tolerance,
    outcome: Outcome<'_>,
) -> sqlx::Result<bool> {
    let evidence = json!({
        "round": version.canary_round, "succeeded": samples.succeeded, "failed": samples.failed,
        "failure_rate": samples.failure_rate(), "max_failure_rate": tolerance.max_failure_rate,
        "min_samples": tolerance.min_samples, "last_run": outcome.run_id,
    });
    let reason = "The canary failed more often than is tolerated.";
    let with = Advance { reason: Some(reason), evidence: Some(&evidence), canary: None };
    if app_versions::advance(conn, version, VersionAction::Rollback, with).await?.is_none() {
        return Ok(false);
    }
    tell(conn, version, evidence, reason, outcome.thread).await?;
    Ok(true)
}

async fn tell(
    conn: &mut PgConnection,
    version: &AppVersion,
    evidence: Value,
    reason: &str,
    thread: Thread<'_>,
) -> sqlx::Result<()> {
    let (org_id, project_id) = version.owner();
    let entry = audit::NewEntry {
        org_id: Some(org_id),
        project_id: Some(project_id),
        actor_type: Some("platform"),
        action: "halt_canary".to_owned(),
        target: format!("version:{}", version.id),
        before: Some(json!({ "status": version.status })),
        after: Some(json!({ "status": VersionStatus::Staged, "evidence": evidence })),
        reason: Some(reason.to_owned()),
        correlation_id: thread.correlation_id.to_owned(),
        ..audit::NewEntry::default()
    };
    audit::insert(conn, &entry).await?;
    let data = json!({
        "id": version.id, "app_slug": version.slug, "version": version.version, "status": VersionStatus::Staged,
        "reason": reason, "evidence": evidence,
    });
    let event =
        NewEvent::of_project(version.owner(), EventType::VersionCanaryHalted, version.id, &data, thread);
    outbox::insert(conn, &event).await?;
    Ok(())
}

/// Of the version's present canary.
pub async fn of(conn: &mut PgConnection, version: &AppVersion) -> sqlx::Result<Samples> {
    let counted = sqlx::query!(
        r#"select count(*) filter (where failed) as "failed!", count(*) filter (where not failed) as "succeeded!"
           from canary_samples where version_id = $1 and round = $2"#,
        version.id,
        version.canary_round
    )
    .fetch_one(conn)
    .await?;
    let number = |count: i64| u32::try_from(count).unwrap_or(u32::MAX);
    Ok(Samples { succeeded: number(counted.succeeded), failed: number(counted.failed) })
}

/// What policy says for the project that owns the app.
pub async fn tolerance(conn: &mut PgConnection, version: &AppVersion) -> sqlx::Result<Tolerance> {
    let (org, project) = version.owner();
    let owner = Subject { org: Some(org), project: Some(project), user: None };
    let max_failure_rate = policies::number(conn, PolicyKey::CanaryMaxFailureRate, owner).await?;
    let samples = policies::whole_number(conn, PolicyKey::CanaryMinSamples, owner).await?;
    Ok(Tolerance { max_failure_rate, min_samples: u32::try_from(samples).unwrap_or(u32::MAX) })
}
