//! Which digest an instance runs: the one that was frozen for the accelerator it stands on, or the candidate that the
//! request names. Whoever begins to use an artifact and whoever ends its life take turns on its row.

use domain::ErrorCode::{ArtifactNotDeployable, ArtifactNotFound, ArtifactUntrusted};
use domain::artifact::{Lifecycle, Trust};
use domain::manifest::{ArtifactKind, ArtifactSlot, Version};
use sqlx::PgConnection;
use uuid::Uuid;

use super::Purpose;
use crate::app_artifacts::{self, AppArtifact};
use crate::app_instance_artifacts::UsedArtifact;
use crate::app_versions::AppVersion;
use crate::{Refused, version_artifacts};

/// What decides which of several images it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Which<'a> {
    pub(super) accelerator: Option<&'a str>,
    pub(super) variant: Option<&'a str>,
    pub(super) artifact_id: Option<Uuid>,
}

/// One usable image for every name that the version has; the variant that was chosen beside it.
pub(super) async fn choose(
    conn: &mut PgConnection,
    version: &AppVersion,
    declared: &Version,
    which: Which<'_>,
    purpose: Purpose,
) -> Result<Vec<UsedArtifact>, Refused> {
    let named = match which.artifact_id {
        Some(id) => Some(candidate(conn, version, declared, id).await?),
        None => None,
    };
    let mut chosen = Vec::new();
    for name in names(declared) {
        let artifact = match &named {
            Some(named) if named.artifact_name == name => named.clone(),
            _ => frozen(conn, version, declared, name, which).await?,
        };
        chosen.push(usable(&artifact, purpose)?);
    }
    Ok(chosen)
}

/// Blobs are fetched by the app itself, so only images are resolved.
fn names(declared: &Version) -> Vec<&str> {
    let images = declared.artifacts.iter().filter(|slot| slot.artifact_kind == ArtifactKind::Oci);
    let mut names: Vec<&str> = images.map(|slot| slot.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// An image that was registered for this very version, though perhaps after it was frozen.
async fn candidate(
    conn: &mut PgConnection,
    version: &AppVersion,
    declared: &Version,
    id: Uuid,
) -> Result<AppArtifact, Refused> {
    let found = app_artifacts::find_locked(conn, id).await?;
    let of_version = |artifact: &AppArtifact| {
        artifact.project_id == version.owner_project_id
            && artifact.app_slug == version.slug
            && artifact.app_version == version.version
    };
    let found = found.filter(of_version).ok_or_else(|| {
        let message = format!("No artifact of {} {} has this id.", version.slug, version.version);
        Refused::no(ArtifactNotFound, message)
    })?;
    let is_image = found.artifact_kind == ArtifactKind::Oci.as_str();
    if is_image && names(declared).contains(&found.artifact_name.as_str()) {
        return Ok(found);
    }
    let (name, number) = (&found.artifact_name, &version.version);
    let message = format!("The artifact {name} is no image that {} {number} runs.", version.slug);
    Err(Refused::no(ArtifactNotDeployable, message)
        .with("artifact_id", found.id.to_string())
        .with("artifact_name", name.as_str()))
}

async fn frozen(
    conn: &mut PgConnection,
    version: &AppVersion,
    declared: &Version,
    name: &str,
    which: Which<'_>,
) -> Result<AppArtifact, Refused> {
    let mut all = version_artifacts::frozen_as(conn, version.id, name).await?;
    all.sort_by_key(|(variant, _)| rank(declared, variant, which));
    let best = all.into_iter().find(|(variant, _)| rank(declared, variant, which) < UNFIT);
    let id = best.map(|(_, artifact)| artifact).ok_or_else(|| missing(version, name, which))?;
    app_artifacts::find_locked(conn, id).await?.ok_or_else(|| missing(version, name, which))
}

const UNFIT: u8 = 4;

/// What was asked for; else what was made for the accelerator, what fits every node, what needs no accelerator.
fn rank(declared: &Version, variant: &str, which: Which<'_>) -> u8 {
    if let Some(asked) = which.variant {
        return if variant == asked { 0 } else { UNFIT };
    }
    let profiles = declared.runtime_profile.iter().flat_map(|profile| &profile.variants);
    let named = profiles.into_iter().find(|one| one.name == variant);
    let made_for = |accelerator: &str| match named {
        Some(one) => one.accelerators.iter().any(|known| known == accelerator),
        None => variant == accelerator,
    };
    match variant {
        _ if which.accelerator.is_some_and(made_for) => 1,
        "" => 2,
        "cpu" => 3,
        _ => UNFIT,
    }
}

fn missing(version: &AppVersion, name: &str, which: Which<'_>) -> Refused {
    let place = which.variant.or(which.accelerator).unwrap_or("cpu");
    let message = format!("{} {} has no image `{name}` for {place}.", version.slug, version.version);
    Refused::no(ArtifactNotDeployable, message).with("artifact_name", name).with("variant", place)
}

/// As the instance will use it, if it may be used.
pub fn usable(artifact: &AppArtifact, purpose: Purpose) -> Result<UsedArtifact, Refused> {
    let (trust, lifecycle) = (artifact.trust()?, artifact.lifecycle()?);
    let evidence = |refused: Refused| {
        refused.with("artifact_id", artifact.id.to_string()).with("digest", artifact.digest.clone())
    };
    if trust != Trust::Verified {
        let message = format!("The artifact {} is {}.", artifact.artifact_name, trust.as_str());
        return Err(evidence(Refused::no(ArtifactUntrusted, message).with("state", trust.as_str())));
    }
    let alive = match lifecycle {
        Lifecycle::Published | Lifecycle::Promoted => true,
        Lifecycle::Deprecated => purpose == Purpose::Return,
        Lifecycle::Retired => false,
    };
    let repository = artifact.repository.clone().filter(|_| alive).ok_or_else(|| {
        let message = format!("The artifact {} is {}.", artifact.artifact_name, lifecycle.as_str());
        evidence(Refused::no(ArtifactNotDeployable, message).with("state", lifecycle.as_str()))
    })?;
    Ok(UsedArtifact {
        name: artifact.artifact_name.clone(),
        artifact_id: artifact.id,
        digest: artifact.digest.clone(),
        repository,
    })
}

/// The same of artifacts that were chosen before; they are held still.
pub async fn still_usable(
    conn: &mut PgConnection,
    used: &[UsedArtifact],
    purpose: Purpose,
) -> Result<Vec<AppArtifact>, Refused> {
    let mut ids: Vec<Uuid> = used.iter().map(|one| one.artifact_id).collect();
    ids.sort_unstable();
    let mut all = Vec::new();
    for id in ids {
        let gone = || Refused::no(ArtifactNotDeployable, "The artifact is gone.");
        let artifact = app_artifacts::find_locked(conn, id).await?.ok_or_else(gone)?;
        usable(&artifact, purpose)?;
        all.push(artifact);
    }
    Ok(all)
}

/// Whether a launch may ask for this variant.
pub(super) fn variant_problem(declared: &Version, variant: Option<&str>) -> Option<(String, String)> {
    let (variant, known) = (variant?, declared.variants());
    if known.contains(&variant) {
        return None;
    }
    let words = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Some(("/variant".to_owned(), format!("is not a variant of this version; known: {words}")))
}

/// What the node agent starts where it starts one container: of several images the one by this name, whatever comes before it
/// in the alphabet.
pub fn runtime(images: &[UsedArtifact]) -> Option<&UsedArtifact> {
    images.iter().find(|image| image.name == ArtifactSlot::RUNTIME).or(images.first())
}
