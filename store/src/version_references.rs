//! Who uses a version: instances that run it, are on their way to it, or would be rolled back to it.

use domain::version_gate::Reference;
use sqlx::PgConnection;
use uuid::Uuid;

/// As many as a person reads. Whether there are any at all is what decides.
const MOST: i64 = 100;

/// With the version held still the answer stays true: whoever makes an instance holds it still too.
pub async fn of(conn: &mut PgConnection, slug: &str, version: &str) -> sqlx::Result<Vec<Reference>> {
    sqlx::query_as!(
        Reference,
        "select id as app_instance_id, project_id, display_name, status from app_instances
         where app_slug = $1 and status <> 'decommissioned'
           and (version = $2 or target_version = $2 or previous_version = $2)
         order by id limit $3",
        slug,
        version,
        MOST
    )
    .fetch_all(conn)
    .await
}

pub async fn of_id(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Vec<Reference>> {
    let named = sqlx::query!(
        "select a.slug, v.version from app_versions v join apps a on a.id = v.app_id where v.id = $1",
        id
    )
    .fetch_optional(&mut *conn)
    .await?;
    match named {
        Some(row) => of(conn, &row.slug, &row.version).await,
        None => Ok(Vec::new()),
    }
}

/// How many instances of an app a project has.
pub async fn instances_of(conn: &mut PgConnection, project: Uuid, slug: &str) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from app_instances
           where project_id = $1 and app_slug = $2 and status <> 'decommissioned'"#,
        project,
        slug
    )
    .fetch_one(conn)
    .await
}
