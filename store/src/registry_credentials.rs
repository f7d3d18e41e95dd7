//! Credentials for the image registry, each for one repository until a moment. Whether one is good is asked of the
//! database's clock, in the statement that reads it.

use sqlx::PgConnection;
use uuid::Uuid;

pub struct NewCredential<'a> {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub repository: &'a str,
    pub may_push: bool,
    pub secret_hash: &'a [u8],
    pub ttl_seconds: i32,
}

/// One that was shown with the right secret, in time.
#[derive(Clone, Debug)]
pub struct Credential {
    pub id: Uuid,
    pub repository: String,
    pub may_push: bool,
    pub seconds_left: i64,
}

pub async fn insert(conn: &mut PgConnection, new: &NewCredential<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into registry_credentials (id, org_id, project_id, repository, may_push, secret_hash, expires_at)
         values ($1, $2, $3, $4, $5, $6, engine.now() + make_interval(secs => $7::integer))",
        new.id,
        new.org_id,
        new.project_id,
        new.repository,
        new.may_push,
        new.secret_hash,
        new.ttl_seconds
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Unknown, wrong, expired and revoked ones are not told apart. What a machine asked for for itself ends with the machine.
pub async fn find_good(
    conn: &mut PgConnection,
    id: Uuid,
    secret_hash: &[u8],
) -> sqlx::Result<Option<Credential>> {
    sqlx::query_as!(
        Credential,
        r#"select id, repository, may_push,
                  extract(epoch from expires_at - engine.now())::bigint as "seconds_left!"
           from registry_credentials c
           where id = $1 and secret_hash = $2 and revoked_at is null and expires_at > engine.now()
             and not exists (
                 select 1 from service_accounts s
                 where s.status <> 'active' and s.id in (
                     select created_by from publish_intents where id = c.id
                     union all select created_by from pull_intents where id = c.id and node_id is null))"#,
        id,
        secret_hash
    )
    .fetch_optional(conn)
    .await
}

/// From the next request on. Tokens that were given out go on for their few minutes.
pub async fn revoke(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update registry_credentials set revoked_at = engine.now() where id = $1 and revoked_at is null",
        id
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// All that were given out to pull this artifact.
pub async fn revoke_pulls_of(conn: &mut PgConnection, artifact_id: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update registry_credentials set revoked_at = engine.now()
         where revoked_at is null and id in (select id from pull_intents where artifact_id = $1)",
        artifact_id
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Those that opened nothing any more for so long. The registry's word of what was pushed with one may come a little later.
pub async fn forget_expired(conn: &mut PgConnection, keep_seconds: f64) -> sqlx::Result<u64> {
    let gone = sqlx::query!(
        "delete from registry_credentials where expires_at < engine.now() - make_interval(secs => $1)",
        keep_seconds
    )
    .execute(conn)
    .await?;
    Ok(gone.rows_affected())
}
