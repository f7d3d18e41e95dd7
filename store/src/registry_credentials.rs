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
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub repository: String,
    pub may_push: bool,
    pub seconds_left: i64,
    /// Whoever asked for it for themselves, and holds it only as long as they may ask.
    pub asked_by: Option<Uuid>,
    /// To pull what is for everybody who is signed in.
    pub of_release: bool,
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

/// Unknown, wrong, expired and revoked ones are not told apart.
pub async fn find_good(
    conn: &mut PgConnection,
    id: Uuid,
    secret_hash: &[u8],
) -> sqlx::Result<Option<Credential>> {
    sqlx::query_as!(
        Credential,
        r#"select c.id, c.org_id, c.project_id, c.repository, c.may_push,
                  extract(epoch from c.expires_at - engine.now())::bigint as "seconds_left!",
                  coalesce(push.created_by, pull.created_by) as asked_by,
                  coalesce(pull.of_release, false) as "of_release!"
           from registry_credentials c
           left join publish_intents push on push.id = c.id
           left join pull_intents pull on pull.id = c.id and pull.node_id is null
           where c.id = $1 and c.secret_hash = $2 and c.revoked_at is null and c.expires_at > engine.now()"#,
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

/// All that were given out to pull any of these artifacts, and all that reach their repositories in the hands of a caller,
/// whatever they were asked for. What a node has for another artifact goes on: it lies inside a signed task, which names the
/// one digest that is pulled.
pub async fn revoke_pulls_of(conn: &mut PgConnection, artifacts: &[Uuid]) -> sqlx::Result<()> {
    sqlx::query!(
        "update registry_credentials set revoked_at = engine.now()
         where revoked_at is null and not may_push and (
             id in (select id from pull_intents where artifact_id = any ($1))
             or repository in (select repository from app_artifacts where id = any ($1))
                and not exists (select 1 from pull_intents p
                    where p.id = registry_credentials.id and p.node_id is not null))",
        artifacts
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
