//! Releases of the platform: a version, and names for artifacts. A release never changes.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct Release {
    pub id: Uuid,
    pub version: String,
    pub release_notes: Option<String>,
    pub created_at: DateTime<Utc>,
}

pub struct NewRelease<'a> {
    pub id: Uuid,
    pub version: &'a str,
    pub release_notes: Option<&'a str>,
    pub created_by: Uuid,
    /// Names, and what they stand for.
    pub artifacts: &'a [(String, Uuid)],
}

/// False where the version is taken.
pub async fn insert(conn: &mut PgConnection, new: &NewRelease<'_>) -> sqlx::Result<bool> {
    let made = sqlx::query!(
        "insert into platform_releases (id, version, release_notes, created_by) values ($1, $2, $3, $4)
         on conflict (version) do nothing",
        new.id,
        new.version,
        new.release_notes,
        new.created_by
    )
    .execute(&mut *conn)
    .await?;
    if made.rows_affected() == 0 {
        return Ok(false);
    }
    for (name, artifact) in new.artifacts {
        sqlx::query!(
            "insert into platform_release_artifacts (release_id, name, artifact_id) values ($1, $2, $3)",
            new.id,
            name,
            artifact
        )
        .execute(&mut *conn)
        .await?;
    }
    Ok(true)
}

/// Newest first.
pub async fn list(conn: &mut PgConnection, slice: Slice) -> sqlx::Result<Vec<Release>> {
    sqlx::query_as!(
        Release,
        "select id, version, release_notes, created_at from platform_releases
         where $1::uuid is null or id < $1 order by id desc limit $2",
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, version: &str) -> sqlx::Result<Option<Release>> {
    sqlx::query_as!(
        Release,
        "select id, version, release_notes, created_at from platform_releases where version = $1",
        version
    )
    .fetch_optional(conn)
    .await
}

/// What a name of a release stands for, and how much of it may still be used.
#[derive(Clone, Debug)]
pub struct ReleaseArtifact {
    pub release_id: Uuid,
    pub name: String,
    pub artifact_id: Uuid,
    pub artifact_kind: String,
    pub repository: Option<String>,
    pub digest: String,
    pub media_type: String,
    pub size_bytes: i64,
    pub trust_state: String,
}

/// Of all these releases, by name.
pub async fn artifacts_of(conn: &mut PgConnection, releases: &[Uuid]) -> sqlx::Result<Vec<ReleaseArtifact>> {
    sqlx::query_as!(
        ReleaseArtifact,
        "select r.release_id, r.name, a.id as artifact_id, a.artifact_kind, a.repository, a.digest, a.media_type, a.size_bytes,
                a.trust_state
         from platform_release_artifacts r join app_artifacts a on a.id = r.artifact_id
         where r.release_id = any ($1) order by r.release_id, r.name",
        releases
    )
    .fetch_all(conn)
    .await
}
