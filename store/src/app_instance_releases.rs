//! What was resolved for a version when an instance took it: how it runs. A rollback returns to the one before.

use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::app_instance_artifacts::Standing;

#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    pub version: String,
    pub generation: i64,
    /// The version's runtime profile.
    pub profile: Value,
}

/// The release of this standing is this one from now on.
pub async fn set(
    conn: &mut PgConnection,
    instance: Uuid,
    standing: Standing,
    release: &Release,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into app_instance_releases (instance_id, standing, version, generation, profile)
         values ($1, $2, $3, $4, $5)
         on conflict (instance_id, standing) do update set version = $3, generation = $4, profile = $5",
        instance,
        standing.as_str(),
        release.version,
        release.generation,
        release.profile
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn find(
    conn: &mut PgConnection,
    instance: Uuid,
    standing: Standing,
) -> sqlx::Result<Option<Release>> {
    sqlx::query_as!(
        Release,
        "select version, generation, profile from app_instance_releases where instance_id = $1 and standing = $2",
        instance,
        standing.as_str()
    )
    .fetch_optional(conn)
    .await
}

/// What had one standing has the other from now on, and nothing else has.
pub async fn promote(
    conn: &mut PgConnection,
    instance: Uuid,
    from: Standing,
    to: Standing,
) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from app_instance_releases where instance_id = $1 and standing = $2",
        instance,
        to.as_str()
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update app_instance_releases set standing = $3 where instance_id = $1 and standing = $2",
        instance,
        from.as_str(),
        to.as_str()
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn clear_all(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from app_instance_releases where instance_id = $1", instance).execute(conn).await?;
    Ok(())
}
