//! Another version for an instance that runs: what would change, and whether both versions fit beside each other.

use std::collections::BTreeSet;

use domain::ErrorCode::{PlacementUnsatisfiable, StateConflict, VersionNotFound};
use domain::compose;
use domain::entitlement::Effective;
use domain::manifest::{Problem, RuntimeProfile, Version};
use domain::placement::{self, Candidate, Grant, Row, Strategy, Wanted};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::images::{self, Which};
use super::{Admitted, Purpose, admit, candidate, credentials, own_share, still_usable};
use crate::allocations::{self, Allocation};
use crate::app_instance_artifacts::{self, Standing, UsedArtifact};
use crate::app_instance_releases::{self, Release};
use crate::app_instances::AppInstance;
use crate::app_versions::{self, AppVersion};
use crate::{Refused, parsed};

/// Where an instance is to go.
#[derive(Clone, Debug)]
pub struct To {
    /// A return without a version goes to the last good one.
    pub version: Option<String>,
    pub artifact_id: Option<Uuid>,
    pub purpose: Purpose,
}

/// What would change.
#[derive(Clone, Debug)]
pub struct Change {
    pub version_id: Uuid,
    pub images: Vec<UsedArtifact>,
    pub release: Release,
    /// Where nothing changes, what serves goes on beside nothing.
    pub strategy: Strategy,
    /// The same version and the same digests serve already.
    pub is_nothing: bool,
    /// Empty where nothing changes: no place is looked for.
    pub matrix: Vec<Row>,
    pub policy: Effective,
}

pub async fn decide_change(
    conn: &mut PgConnection,
    instance: &AppInstance,
    to: &To,
) -> Result<Change, Refused> {
    let version = wanted_version(conn, instance, to).await?;
    let pair = (Some(parsed(&instance.operating_mode)?), Some(parsed(&instance.control_plane_scope)?));
    let place = (instance.org_id, instance.project_id);
    let admitted = admit(conn, place, &version, pair, to.purpose).await?;
    credentials::require(conn, instance, &admitted.manifest.version).await?;
    let allocation = allocation_of(conn, instance).await?;
    let accelerator = allocation.accelerator.as_deref();
    let (images, release) = match previous(conn, instance, &version, to).await? {
        Some(known) => known,
        None => fresh(conn, instance, &version, &admitted, accelerator, to).await?,
    };
    let grant: Grant = serde_json::from_value(release.resources.clone()).map_err(unreadable)?;
    admitted.allows(&grant)?;
    let serving = app_instance_artifacts::of(conn, instance.id, Standing::Serving).await?;
    let is_nothing = instance.version == version.version && digests(&serving) == digests(&images);
    let (strategy, matrix) = if is_nothing {
        (Strategy::SideBySide, Vec::new())
    } else {
        let wanted = Wanted::of(&admitted.manifest.version.compatibility, grant);
        placed(conn, instance, &allocation, &wanted).await?
    };
    let policy = admitted.policy;
    Ok(Change { version_id: version.id, images, release, strategy, is_nothing, matrix, policy })
}

async fn allocation_of(conn: &mut PgConnection, instance: &AppInstance) -> Result<Allocation, Refused> {
    let found = match instance.allocation_id {
        Some(id) => allocations::find(conn, id).await?,
        None => None,
    };
    found.ok_or_else(|| Refused::no(StateConflict, "The instance stands nowhere."))
}

async fn placed(
    conn: &mut PgConnection,
    instance: &AppInstance,
    allocation: &Allocation,
    wanted: &Wanted,
) -> Result<(Strategy, Vec<Row>), Refused> {
    let there = candidate(conn, allocation, wanted.host_port, Some(instance.id)).await?;
    fitting(wanted, there, &own_share(conn, instance).await?.grant)
}

/// Every image counts, by its name: an app may fetch those that the node does not start.
fn digests(images: &[UsedArtifact]) -> BTreeSet<(&str, &str)> {
    images.iter().map(|image| (image.name.as_str(), image.digest.as_str())).collect()
}

async fn wanted_version(
    conn: &mut PgConnection,
    instance: &AppInstance,
    to: &To,
) -> Result<AppVersion, Refused> {
    let number = to.version.as_ref().or(instance.previous_version.as_ref());
    let number = number.ok_or_else(|| {
        let message = "Nothing ran before what runs now, so there is nothing to return to.";
        Refused::no(StateConflict, message).with("state", instance.status.clone())
    })?;
    let found = app_versions::hold_for_use(conn, &instance.app_slug, number).await?;
    found.ok_or_else(|| {
        Refused::no(VersionNotFound, format!("{} has no version {number}.", instance.app_slug))
    })
}

/// What the instance ran before, exactly; only where nothing else was asked for.
async fn previous(
    conn: &mut PgConnection,
    instance: &AppInstance,
    version: &AppVersion,
    to: &To,
) -> Result<Option<(Vec<UsedArtifact>, Release)>, Refused> {
    if to.purpose != Purpose::Return || to.artifact_id.is_some() {
        return Ok(None);
    }
    let release = app_instance_releases::find(conn, instance.id, Standing::Previous).await?;
    let Some(release) = release.filter(|release| release.version == version.version) else { return Ok(None) };
    let images = app_instance_artifacts::of(conn, instance.id, Standing::Previous).await?;
    still_usable(conn, &images, to.purpose).await?;
    Ok(Some((images, release)))
}

/// What was asked for the instance, as far as the version takes it, with the version's own defaults.
async fn fresh(
    conn: &mut PgConnection,
    instance: &AppInstance,
    version: &AppVersion,
    admitted: &Admitted,
    accelerator: Option<&str>,
    to: &To,
) -> Result<(Vec<UsedArtifact>, Release), Refused> {
    let declared = &admitted.manifest.version;
    let grant: Grant = serde_json::from_value(instance.resources.clone()).map_err(unreadable)?;
    let grant = nearest(declared, grant);
    let config = declared.effective_config(instance.config_to_keep());
    takes(declared, instance, &config, grant)?;
    let known = |variant: &&str| declared.variants().contains(variant);
    let which = Which {
        accelerator,
        variant: instance.variant.as_deref().filter(known),
        artifact_id: to.artifact_id,
    };
    let images = images::choose(conn, version, declared, which, to.purpose).await?;
    let release = Release {
        version: version.version.clone(),
        generation: instance.generation,
        profile: json!(declared.runtime_profile),
        config,
        resources: json!(grant),
        ports: json!({}),
        gpus: Vec::new(),
    };
    Ok((images, release))
}

/// Whether the version takes all that the instance was asked for with, and a stack can be rendered of it; or else everything
/// that stands in the way.
fn takes(declared: &Version, instance: &AppInstance, config: &Value, grant: Grant) -> Result<(), Refused> {
    let packages: Vec<String> = serde_json::from_value(instance.packages.clone()).map_err(unreadable)?;
    let mut wrong: Vec<String> = Vec::new();
    let mut say = |what: &str, problems: Vec<Problem>| {
        wrong.extend(problems.iter().map(|one| format!("{what}{} {}", one.pointer, one.message)));
    };
    say("config", declared.config_problems(instance.config_to_keep()));
    say("list of packages", declared.package_problems(&packages));
    if let Some(profile) = &declared.runtime_profile {
        let found = compose::problems(profile, config, grant);
        wrong.extend(
            found.iter().map(|one| format!("{} {}", one.pointer.trim_start_matches('/'), one.message)),
        );
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let told = |one: String| ("/target_version".to_owned(), format!("the instance's {one}"));
    Err(Refused::Invalid(wrong.into_iter().map(told).collect()))
}

/// What it has, moved into the bounds of the version.
fn nearest(declared: &Version, grant: Grant) -> Grant {
    let bounds = declared.runtime_profile.as_ref().map(|profile: &RuntimeProfile| &profile.resources);
    let Some(bounds) = bounds else { return grant };
    Grant {
        gpu_count: bounds.gpu_count.nearest(grant.gpu_count),
        cpu_cores: bounds.cpu_cores.nearest(grant.cpu_cores),
        memory_gib: bounds.memory_gib.nearest(grant.memory_gib),
        host_port: grant.host_port,
    }
}

/// Beside what runs, if that fits; else in its place.
fn fitting(wanted: &Wanted, there: Candidate, own: &Grant) -> Result<(Strategy, Vec<Row>), Refused> {
    let matrix = placement::matrix(wanted, std::slice::from_ref(&there));
    if matrix.iter().all(|row| row.fits) {
        return Ok((Strategy::SideBySide, matrix));
    }
    let there = there.without(own);
    let matrix = placement::matrix(wanted, &[there]);
    if matrix.iter().all(|row| row.fits) {
        return Ok((Strategy::StopThenStart, matrix));
    }
    let message = "The instance's allocation cannot carry the version; the matrix says why.";
    Err(Refused::no(PlacementUnsatisfiable, message).with("matrix", json!(matrix)))
}

fn unreadable(error: serde_json::Error) -> Refused {
    Refused::Database(sqlx::Error::Decode(Box::new(error)))
}

impl Change {
    /// What plans and events tell of it.
    pub fn told(&self) -> Value {
        json!({ "version": self.release.version, "strategy": self.strategy, "changes_nothing": self.is_nothing })
    }
}
