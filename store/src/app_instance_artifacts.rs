//! The digests an instance runs, is moving to, or may return to. A row means a use: rows go with the use.

use sqlx::PgConnection;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedArtifact {
    pub name: String,
    pub artifact_id: Uuid,
    pub digest: String,
    pub repository: String,
}

/// What the instance has to do with an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Serving,
    Target,
    /// Where a rollback goes unless told otherwise.
    Previous,
}

impl Standing {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Standing::Serving => "serving",
            Standing::Target => "target",
            Standing::Previous => "previous",
        }
    }
}

/// The artifacts of this standing are these from now on, and no others.
pub async fn set(
    conn: &mut PgConnection,
    instance: Uuid,
    standing: Standing,
    artifacts: &[UsedArtifact],
) -> sqlx::Result<()> {
    clear(conn, instance, standing).await?;
    for artifact in artifacts {
        sqlx::query!(
            "insert into app_instance_artifacts (instance_id, standing, name, artifact_id, digest, repository)
             values ($1, $2, $3, $4, $5, $6)",
            instance,
            standing.as_str(),
            artifact.name,
            artifact.artifact_id,
            artifact.digest,
            artifact.repository
        )
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

pub async fn clear(conn: &mut PgConnection, instance: Uuid, standing: Standing) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from app_instance_artifacts where instance_id = $1 and standing = $2",
        instance,
        standing.as_str()
    )
    .execute(conn)
    .await?;
    Ok(())
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
        "update app_instance_artifacts set standing = $3 where instance_id = $1 and standing = $2",
        instance,
        from.as_str(),
        to.as_str()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The instance uses nothing any more.
pub async fn clear_all(conn: &mut PgConnection, instance: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from app_instance_artifacts where instance_id = $1", instance).execute(conn).await?;
    Ok(())
}

pub async fn of(
    conn: &mut PgConnection,
    instance: Uuid,
    standing: Standing,
) -> sqlx::Result<Vec<UsedArtifact>> {
    sqlx::query_as!(
        UsedArtifact,
        "select name, artifact_id, digest, repository from app_instance_artifacts
         where instance_id = $1 and standing = $2 order by name",
        instance,
        standing.as_str()
    )
    .fetch_all(conn)
    .await
}

/// The digests of what instances on a node run, move to or may return to.
pub async fn digests_on(conn: &mut PgConnection, node: Uuid) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        "select distinct u.digest from app_instance_artifacts u join app_instances i on i.id = u.instance_id
         join allocations a on a.id = i.allocation_id where a.node_id = $1 order by u.digest",
        node
    )
    .fetch_all(conn)
    .await
}
