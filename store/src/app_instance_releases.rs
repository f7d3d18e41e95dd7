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
    /// With the defaults that the version's schema fills in.
    pub config: Value,
    /// As the server decided them.
    pub resources: Value,
    /// Name of the port to the port on the node, once it was launched.
    pub ports: Value,
    /// Which GPUs of its allocation, once it was launched.
    pub gpus: Vec<i32>,
}

/// The release of this standing is this one from now on.
pub async fn set(
    conn: &mut PgConnection,
    instance: Uuid,
    standing: Standing,
    release: &Release,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into app_instance_releases (instance_id, standing, version, generation, profile, config, resources, ports, gpus)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (instance_id, standing) do update
         set version = $3, generation = $4, profile = $5, config = $6, resources = $7, ports = $8, gpus = $9, rendered = null",
        instance,
        standing.as_str(),
        release.version,
        release.generation,
        release.profile,
        release.config,
        release.resources,
        release.ports,
        release.gpus.as_slice()
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
        "select version, generation, profile, config, resources, ports, gpus from app_instance_releases
         where instance_id = $1 and standing = $2",
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
    clear(conn, instance, to).await?;
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

/// The target is launched as this generation, on these ports and GPUs of its node; as this Compose file, where it is a stack.
pub async fn set_launched(
    conn: &mut PgConnection,
    instance: Uuid,
    generation: i64,
    (ports, gpus): (&Value, &[i32]),
    rendered: Option<&Value>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_instance_releases set generation = $2, ports = $3, rendered = $4, gpus = $5
         where instance_id = $1 and standing = 'target'",
        instance,
        generation,
        ports,
        rendered,
        gpus
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A stack as it was rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    pub version: String,
    pub generation: i64,
    /// The Compose file.
    pub file: Value,
}

/// What serves, or, before anything does, what is about to; none where nothing was rendered.
pub async fn rendered(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<Option<Rendered>> {
    sqlx::query_as!(
        Rendered,
        r#"select version, generation, rendered as "file!" from app_instance_releases
           where instance_id = $1 and standing in ('serving', 'target') and rendered is not null
           order by standing limit 1"#,
        instance
    )
    .fetch_optional(conn)
    .await
}

pub async fn clear(conn: &mut PgConnection, instance: Uuid, standing: Standing) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from app_instance_releases where instance_id = $1 and standing = $2",
        instance,
        standing.as_str()
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn clear_all(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from app_instance_releases where instance_id = $1", instance).execute(conn).await?;
    Ok(())
}
