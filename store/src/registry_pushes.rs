//! What the registry told of pushes: hints, each once.

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
