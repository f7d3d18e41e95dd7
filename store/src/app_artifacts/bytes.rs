//! Whose bytes are whose. A manifest is deleted only when no registration needs it any more; which ones go is decided,
//! and kept from being registered again, in one transaction with the repository held still.

use chrono::{DateTime, Utc};
use domain::Digest;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{AppArtifact, digest};

/// Whoever registers and whoever deletes in a repository take turns.
async fn hold(conn: &mut PgConnection, repository: &str) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended('repository/' || $1, 0))", repository)
        .execute(conn)
        .await?;
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

/// Gives up the artifact's claim. Answers those of the candidates that nobody else claims, in their order.
pub async fn let_go(
    conn: &mut PgConnection,
    artifact: &AppArtifact,
    candidates: &[Digest],
) -> sqlx::Result<Vec<Digest>> {
    let repository = artifact.repository.as_deref().unwrap_or_default();
    hold(conn, repository).await?;
    let candidates: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    let going = sqlx::query_scalar!(
        r#"update app_artifacts a
           set going = coalesce(going, array(
               select manifest from unnest($2::text[]) with ordinality candidate (manifest, place)
               where not exists (select 1 from app_artifacts other
                   where other.repository = a.repository and other.id <> a.id and other.going is null
                     and (other.digest = manifest or manifest = any (other.children)))
               order by place))
           where id = $1 returning going as "going!""#,
        artifact.id,
        &candidates
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

/// Whether any of these manifests, read since a moment, may have been deleted since. Until the transaction ends, nothing
/// more is decided to go.
pub async fn may_be_gone(
    conn: &mut PgConnection,
    repository: &str,
    digests: &[String],
    since: DateTime<Utc>,
) -> sqlx::Result<bool> {
    hold(conn, repository).await?;
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
