//! Who uses an artifact: instances that run it, are on their way to it or would be rolled back to it, versions that were
//! frozen with it, and releases of the platform. With the artifact held still the answer stays true: whoever begins to use one holds it still too.

use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::AppArtifact;

/// As many of each as a person reads. Whether there are any at all is what decides.
const MOST: i64 = 100;
/// As many as a program goes through after a revocation.
const MOST_AFFECTED: i64 = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uses {
    pub instances: Vec<Reference>,
    pub versions: Vec<NamingVersion>,
    /// Releases of the platform, by version.
    #[serde(default)]
    pub releases: Vec<String>,
    /// However many are listed.
    #[serde(default)]
    pub totals: Totals,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub instances: i64,
    pub versions: i64,
    pub releases: i64,
}

impl Uses {
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty() && self.versions.is_empty() && self.releases.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    pub app_instance_id: Uuid,
    pub project_id: Uuid,
    pub standing: String,
    pub status: String,
}

/// A version that left draft with this artifact and is not retired: somebody may be rolled back to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamingVersion {
    pub version_id: Uuid,
    pub app_slug: String,
    pub version: String,
    pub status: String,
}

pub async fn uses(conn: &mut PgConnection, artifact: &AppArtifact) -> sqlx::Result<Uses> {
    let (instances, of_instances) = references(conn, artifact).await?;
    let (versions, of_versions) = versions_naming(conn, artifact.id).await?;
    let (releases, of_releases) = releases_naming(conn, artifact.id).await?;
    let totals = Totals { instances: of_instances, versions: of_versions, releases: of_releases };
    Ok(Uses { instances, versions, releases, totals })
}

/// Who uses what was revoked.
#[derive(Clone, Debug)]
pub struct Affected {
    /// By instance; at most a thousand.
    pub listed: Vec<Reference>,
    /// However many are listed.
    pub total: i64,
}

/// A use, and how many there are of its kind.
struct Counted {
    app_instance_id: Uuid,
    project_id: Uuid,
    standing: String,
    status: String,
    total: i64,
}

fn counted(rows: Vec<Counted>) -> (Vec<Reference>, i64) {
    let total = rows.first().map_or(0, |row| row.total);
    let listed = rows.into_iter().map(|row| Reference {
        app_instance_id: row.app_instance_id,
        project_id: row.project_id,
        standing: row.standing,
        status: row.status,
    });
    (listed.collect(), total)
}

/// Of all these registrations and of the bytes they name.
pub async fn affected(conn: &mut PgConnection, artifacts: &[Uuid]) -> sqlx::Result<Affected> {
    let rows = sqlx::query_as!(
        Counted,
        r#"select app_instance_id, project_id, standing, status, count(*) over () as "total!"
           from (select distinct i.id as app_instance_id, i.project_id, u.standing, i.status
                 from app_instance_artifacts u join app_instances i on i.id = u.instance_id
                 where i.status <> 'decommissioned' and (u.artifact_id = any ($1) or (u.repository, u.digest) in
                     (select a.repository, a.digest from app_artifacts a where a.id = any ($1)))) used
           order by app_instance_id, standing limit $2"#,
        artifacts,
        MOST_AFFECTED
    )
    .fetch_all(conn)
    .await?;
    let (listed, total) = counted(rows);
    Ok(Affected { listed, total })
}

/// Every use of the bytes counts, whichever registration of them an instance names.
async fn references(conn: &mut PgConnection, artifact: &AppArtifact) -> sqlx::Result<(Vec<Reference>, i64)> {
    let rows = sqlx::query_as!(
        Counted,
        r#"select app_instance_id, project_id, standing, status, count(*) over () as "total!"
           from (select distinct i.id as app_instance_id, i.project_id, u.standing, i.status
                 from app_instance_artifacts u join app_instances i on i.id = u.instance_id
                 where (u.artifact_id = $1 or (u.digest = $2 and u.repository = $3))
                   and i.status <> 'decommissioned') used
           order by app_instance_id, standing limit $4"#,
        artifact.id,
        artifact.digest,
        artifact.repository,
        MOST
    )
    .fetch_all(conn)
    .await?;
    Ok(counted(rows))
}

async fn versions_naming(conn: &mut PgConnection, artifact: Uuid) -> sqlx::Result<(Vec<NamingVersion>, i64)> {
    let rows = sqlx::query!(
        r#"select version_id, app_slug, version, status, count(*) over () as "total!"
           from (select distinct v.id as version_id, a.slug as app_slug, v.version, v.status
                 from app_version_artifacts f join app_versions v on v.id = f.version_id join apps a on a.id = v.app_id
                 where f.artifact_id = $1 and v.status <> 'retired') naming
           order by version_id limit $2"#,
        artifact,
        MOST
    )
    .fetch_all(conn)
    .await?;
    let total = rows.first().map_or(0, |row| row.total);
    let listed = rows.into_iter().map(|row| NamingVersion {
        version_id: row.version_id,
        app_slug: row.app_slug,
        version: row.version,
        status: row.status,
    });
    Ok((listed.collect(), total))
}

async fn releases_naming(conn: &mut PgConnection, artifact: Uuid) -> sqlx::Result<(Vec<String>, i64)> {
    let rows = sqlx::query!(
        r#"select r.version, count(*) over () as "total!"
           from platform_release_artifacts a join platform_releases r on r.id = a.release_id
           where a.artifact_id = $1 order by r.id limit $2"#,
        artifact,
        MOST
    )
    .fetch_all(conn)
    .await?;
    let total = rows.first().map_or(0, |row| row.total);
    Ok((rows.into_iter().map(|row| row.version).collect(), total))
}
