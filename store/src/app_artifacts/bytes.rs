//! Whose bytes are whose. A manifest is deleted only when no registration needs it any more; which ones go is decided,
//! and kept from being registered again, in one transaction with the repository held still.

use chrono::{DateTime, Utc};
use domain::Digest;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{AppArtifact, digest};

/// A manifest that belongs to an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Belonging {
    pub manifest: Digest,
    /// The manifest of the artifact whose signature or provenance it is; none where it is the artifact's own.
    pub vouches_for: Option<Digest>,
}

/// Whoever registers, revokes and deletes in one place take turns. Taken before any artifact's row.
pub async fn hold(conn: &mut PgConnection, home: &str) -> sqlx::Result<()> {
    let name = format!("artifacts/{home}");
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended($1, 0))", name).execute(conn).await?;
    Ok(())
}

/// What an artifact claims: the children of an index, then its own manifest.
pub async fn manifests(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Vec<Digest>> {
    let claimed = sqlx::query_scalar!(
        r#"select children || digest as "claimed!" from app_artifacts where id = $1"#,
        id
    );
    claimed.fetch_one(conn).await?.iter().map(|text| digest(text)).collect()
}

/// Gives up the artifact's claim. Answers those of the candidates that nobody else claims, in their order: none that is
/// another registration's own, none that vouches for another registration's, and none that another's evidence names. Its
/// home is held.
pub async fn let_go(
    conn: &mut PgConnection,
    artifact: &AppArtifact,
    candidates: &[Belonging],
) -> sqlx::Result<Vec<Digest>> {
    let manifests: Vec<String> = candidates.iter().map(|one| one.manifest.to_string()).collect();
    let subjects: Vec<String> =
        candidates.iter().map(|one| one.vouches_for.as_ref().unwrap_or(&one.manifest).to_string()).collect();
    let going = sqlx::query_scalar!(
        r#"update app_artifacts a
           set going = coalesce(going, array(
               select manifest from unnest($2::text[], $3::text[]) with ordinality candidate (manifest, subject, place)
               where not exists (select 1 from app_artifacts other
                   where other.repository = a.repository and other.id <> a.id and other.going is null
                     and (other.digest in (manifest, subject) or other.children && array[manifest, subject]
                       or other.evidence #>> '{provenance,manifest_digest}' = manifest
                       or other.evidence @> jsonb_build_object('signatures',
                            jsonb_build_array(jsonb_build_object('manifest_digest', manifest)))))
               order by place))
           where id = $1 returning going as "going!""#,
        artifact.id,
        &manifests,
        &subjects
    )
    .fetch_one(conn)
    .await?;
    going.iter().map(|text| digest(text)).collect()
}

/// The bytes are gone from where they were kept; the row stays, so that history can name it.
pub async fn mark_deleted(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_artifacts set deleted_at = coalesce(deleted_at, engine.now()) where id = $1",
        id
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether any of these manifests, read since a moment, may have been deleted since. The repository is held, so nothing more
/// is decided to go.
pub async fn may_be_gone(
    conn: &mut PgConnection,
    repository: &str,
    digests: &[String],
    since: DateTime<Utc>,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select 1 from app_artifacts
               where repository = $1 and going && $2 and (deleted_at is null or deleted_at >= $3)) as "going!""#,
        repository,
        digests,
        since
    )
    .fetch_one(conn)
    .await
}

/// The database's time, by which [`may_be_gone`] is asked.
pub async fn now(conn: &mut PgConnection) -> sqlx::Result<DateTime<Utc>> {
    sqlx::query_scalar!(r#"select engine.now() as "now!""#).fetch_one(conn).await
}
