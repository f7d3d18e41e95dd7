//! The artifacts of a version: what its manifest names, and which digest stands for each. Before the version leaves draft
//! that is the newest registered one; leaving freezes the choice.

use domain::manifest::{ArtifactSlot, Manifest};
use domain::version_gate::{FoundArtifact, NeededArtifact};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::app_artifacts::{self, Slot};
use crate::app_versions::{self, AppVersion};

/// Every artifact that the manifest names, with what would be deployed for it.
pub async fn needed(conn: &mut PgConnection, version: &AppVersion) -> sqlx::Result<Vec<NeededArtifact>> {
    let mut needed = Vec::new();
    for slot in slots(version) {
        let found = if version.status.is_frozen() {
            frozen(conn, version.id, &slot).await?
        } else {
            newest(conn, version, &slot).await?
        };
        needed.push(NeededArtifact { name: slot.name, variant: slot.variant, found });
    }
    Ok(needed)
}

/// A manifest that no longer reads names nothing; its own gate is red then.
fn slots(version: &AppVersion) -> Vec<ArtifactSlot> {
    let manifest: Result<Manifest, _> = serde_json::from_value(version.manifest.clone());
    manifest.map(|manifest| manifest.version.artifacts).unwrap_or_default()
}

/// The only digest that the manifest takes for a slot, where it says one.
pub async fn expected_digest(conn: &mut PgConnection, slot: &Slot<'_>) -> sqlx::Result<Option<String>> {
    let version = app_versions::find(conn, slot.app_slug, slot.app_version).await?;
    let same = |one: &ArtifactSlot| one.name == slot.artifact_name && one.variant.as_deref() == slot.variant;
    let declared = version.and_then(|version| slots(&version).into_iter().find(same));
    Ok(declared.and_then(|declared| declared.expected_digest))
}

/// Keeps today's choice for good.
pub async fn freeze(conn: &mut PgConnection, version: &AppVersion) -> sqlx::Result<()> {
    for slot in slots(version) {
        let Some(found) = held(conn, version, &slot).await? else { continue };
        sqlx::query!(
            "insert into app_version_artifacts (version_id, name, variant, artifact_id, digest) values ($1, $2, $3, $4, $5)",
            version.id,
            slot.name,
            slot.variant.unwrap_or_default(),
            found.artifact_id,
            found.digest
        )
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// The newest, held still: whoever begins to use an artifact and whoever ends its life take turns on its row.
async fn held(
    conn: &mut PgConnection,
    version: &AppVersion,
    slot: &ArtifactSlot,
) -> sqlx::Result<Option<FoundArtifact>> {
    loop {
        let Some(found) = newest(conn, version, slot).await? else { return Ok(None) };
        app_artifacts::find_locked(conn, found.artifact_id).await?;
        // It may have been taken out of use before its turn came.
        let now = newest(conn, version, slot).await?;
        if now.as_ref().is_some_and(|now| now.artifact_id == found.artifact_id) {
            return Ok(now);
        }
    }
}

/// Of those the owner registered for the slot and nobody revoked or withdrew, and that the manifest takes.
async fn newest(
    conn: &mut PgConnection,
    version: &AppVersion,
    slot: &ArtifactSlot,
) -> sqlx::Result<Option<FoundArtifact>> {
    sqlx::query_as!(
        FoundArtifact,
        "select id as artifact_id, digest, lifecycle_state, trust_state, channels from app_artifacts
         where project_id = $1 and app_slug = $2 and app_version = $3 and artifact_name = $4
           and coalesce(variant, '') = $5 and trust_state <> 'revoked' and lifecycle_state in ('published', 'promoted')
           and digest = coalesce($6, digest)
         order by id desc limit 1",
        version.owner_project_id,
        version.slug,
        version.version,
        slot.name,
        slot.variant.as_deref().unwrap_or_default(),
        slot.expected_digest
    )
    .fetch_optional(conn)
    .await
}

async fn frozen(
    conn: &mut PgConnection,
    version: Uuid,
    slot: &ArtifactSlot,
) -> sqlx::Result<Option<FoundArtifact>> {
    sqlx::query_as!(
        FoundArtifact,
        "select f.artifact_id, f.digest, a.lifecycle_state, a.trust_state, a.channels
         from app_version_artifacts f join app_artifacts a on a.id = f.artifact_id
         where f.version_id = $1 and f.name = $2 and f.variant = $3",
        version,
        slot.name,
        slot.variant.as_deref().unwrap_or_default()
    )
    .fetch_optional(conn)
    .await
}

/// What was frozen under a name: each variant, empty where there is none, with its artifact.
pub async fn frozen_as(
    conn: &mut PgConnection,
    version: Uuid,
    name: &str,
) -> sqlx::Result<Vec<(String, Uuid)>> {
    let rows = sqlx::query!(
        "select variant, artifact_id from app_version_artifacts where version_id = $1 and name = $2 order by variant",
        version,
        name
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.variant, row.artifact_id)).collect())
}
