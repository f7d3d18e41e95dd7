//! What the registry told of pushes: hints, each once. By them the platform knows which manifests were pushed and never
//! registered; those are condemned here, with their repository held still, before any is deleted.

use chrono::{DateTime, Utc};
use domain::Digest;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use uuid::Uuid;

pub struct Push<'a> {
    pub event_id: &'a str,
    pub credential_id: Uuid,
    pub repository: &'a str,
    pub digest: &'a str,
    pub tag: Option<&'a str>,
    pub media_type: Option<&'a str>,
    pub size_bytes: Option<i64>,
}

/// Only of credentials we gave out, for the repository they were for; anything else is not kept.
pub async fn note(conn: &mut PgConnection, push: &Push<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into registry_pushes (event_id, credential_id, repository, digest, tag, media_type, size_bytes)
         select $1, id, repository, $4, $5, $6, $7 from registry_credentials where id = $2 and repository = $3
         on conflict (event_id) do nothing",
        push.event_id,
        push.credential_id,
        push.repository,
        push.digest,
        push.tag,
        push.media_type,
        push.size_bytes
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A manifest that was pushed and that no registration has as its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stray {
    pub repository: String,
    pub digest: String,
    /// The manifest that it vouches for, where it says so.
    pub vouches_for: Option<Digest>,
}

/// Those that were last pushed so long ago; at most `limit`. Where a tag says what a manifest vouches for, that is told.
pub async fn strays(conn: &mut PgConnection, older_seconds: f64, limit: i64) -> sqlx::Result<Vec<Stray>> {
    let rows = sqlx::query!(
        r#"select repository, digest, max(substring(tag from '^sha256-([0-9a-f]{64})(?:\.sig|\.att)?$')) as vouches_for
           from registry_pushes p
           where deleted_at is null
             and not exists (select 1 from app_artifacts a where a.repository = p.repository and a.going is null
                 and (a.digest = p.digest or p.digest = any (a.children)))
           group by repository, digest
           having max(received_at) < engine.now() - make_interval(secs => $1)
           order by repository, digest limit $2"#,
        older_seconds,
        limit
    )
    .fetch_all(conn)
    .await?;
    let subject = |hex: String| format!("sha256:{hex}").parse().ok();
    Ok(rows
        .into_iter()
        .map(|row| Stray {
            repository: row.repository,
            digest: row.digest,
            vouches_for: row.vouches_for.and_then(subject),
        })
        .collect())
}

/// Decides that it goes, unless anything needs it by now or it was pushed again. Whether it goes; its repository is held.
pub async fn condemn(conn: &mut PgConnection, stray: &Stray, older_seconds: f64) -> sqlx::Result<bool> {
    let subject = stray.vouches_for.as_ref().map_or(stray.digest.as_str(), Digest::as_str);
    let condemned = sqlx::query!(
        "update registry_pushes set going_at = engine.now()
         where repository = $1 and digest = $2
           and not exists (select 1 from registry_pushes again where again.repository = $1 and again.digest = $2
               and again.received_at >= engine.now() - make_interval(secs => $4))
           and not exists (select 1 from app_artifacts a where a.repository = $1 and a.going is null
               and (a.digest in ($2, $3) or a.children && array[$2, $3]
                 or a.evidence #>> '{provenance,manifest_digest}' = $2
                 or a.evidence @> jsonb_build_object('signatures',
                      jsonb_build_array(jsonb_build_object('manifest_digest', $2::text)))))",
        stray.repository,
        stray.digest,
        subject,
        older_seconds
    )
    .execute(conn)
    .await?;
    Ok(condemned.rows_affected() > 0)
}

/// What something needs is taken along by whoever needs it: no hint is wanted any more.
pub async fn forget_needed(conn: &mut PgConnection, stray: &Stray, older_seconds: f64) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from registry_pushes where repository = $1 and digest = $2 and going_at is null
           and received_at < engine.now() - make_interval(secs => $3)",
        stray.repository,
        stray.digest,
        older_seconds
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The registry has it no more. The rows stay a while for whoever read the manifest just before.
pub async fn mark_deleted(conn: &mut PgConnection, stray: &Stray) -> sqlx::Result<()> {
    sqlx::query!(
        "update registry_pushes set deleted_at = coalesce(deleted_at, engine.now())
         where repository = $1 and digest = $2 and going_at is not null",
        stray.repository,
        stray.digest
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whether any of these, read since a moment, may have been deleted since. The repository is held.
pub async fn may_be_gone(
    conn: &mut PgConnection,
    repository: &str,
    digests: &[String],
    since: DateTime<Utc>,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select 1 from registry_pushes
               where repository = $1 and digest = any ($2) and going_at is not null
                 and (deleted_at is null or deleted_at >= $3)) as "going!""#,
        repository,
        digests,
        since
    )
    .fetch_one(conn)
    .await
}

/// Forgives those of these that were condemned and pushed again since, unless a look that may delete them is not over. The
/// repository is held, so a look that begins now finds whatever the caller registers.
pub async fn forgive(conn: &mut PgConnection, repository: &str, digests: &[String]) -> sqlx::Result<()> {
    sqlx::query!(
        "update registry_pushes p set going_at = null
         where repository = $1 and digest = any ($2) and going_at is not null and deleted_at is null
           and exists (select 1 from registry_pushes again where again.repository = p.repository
               and again.digest = p.digest and again.received_at > p.going_at)
           and not exists (select 1 from engine.run where kind = 'artifact.clear_away' and finished_at is null)",
        repository,
        digests
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What is registered needs no hint any more, and what is gone is not asked for.
pub async fn forget(conn: &mut PgConnection, older_seconds: f64) -> sqlx::Result<u64> {
    let gone = sqlx::query!(
        "delete from registry_pushes p
         where received_at < engine.now() - make_interval(secs => $1)
           and (deleted_at < engine.now() - make_interval(secs => $1)
             or going_at is null and exists (select 1 from app_artifacts a where a.repository = p.repository
                 and (a.digest = p.digest or p.digest = any (a.children))))",
        older_seconds
    )
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}
