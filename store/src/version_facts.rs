//! Everything that the gates of a version are judged by, read at one moment.

use domain::manifest;
use domain::version_gate::Facts;
use domain::{AllocationStatus, PolicyKey};
use sqlx::PgConnection;

use crate::allocations::{self, Filter};
use crate::app_versions::AppVersion;
use crate::policies::{self, Subject};
use crate::{Slice, canary_samples, smoke_runs, version_artifacts, version_references};

pub async fn of(conn: &mut PgConnection, version: &AppVersion) -> sqlx::Result<Facts> {
    // Rules grow with releases; a draft must pass those of the day on which it moves.
    let (manifest_problems, smoke_tests) = match manifest::take(&version.manifest) {
        Ok(taken) => (Vec::new(), taken.manifest.version.smoke.into_iter().map(|test| test.name).collect()),
        Err(rejected) => (rejected.problems.iter().map(ToString::to_string).collect(), Vec::new()),
    };
    let (org, project) = version.owner();
    let owner = Subject { org: Some(org), project: Some(project), user: None };
    let channels = policies::resolve(conn, PolicyKey::ActiveChannels, owner).await?.value;
    let active =
        Filter { project: Some(project), status: vec![AllocationStatus::Active], ..Filter::default() };
    let allocations = allocations::list(conn, &active, Slice { after: None, limit: 1 }).await?;
    Ok(Facts {
        manifest_problems,
        artifacts: version_artifacts::needed(conn, version).await?,
        active_channels: serde_json::from_value(channels).unwrap_or_default(),
        smoke_tests,
        last_smoke: smoke_runs::last(conn, version.id).await?,
        can_smoke: !allocations.is_empty(),
        canary: canary_samples::of(conn, version).await?,
        tolerance: canary_samples::tolerance(conn, version).await?,
        references: version_references::of(conn, &version.slug, &version.version).await?,
    })
}
