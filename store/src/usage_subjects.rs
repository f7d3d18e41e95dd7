//! Whose usage an event tells of: the instance, and what its version says it counts.

use domain::manifest::Metering;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::usage_records::Attribution;

#[derive(Clone, Debug)]
pub struct UsageSubject {
    pub instance: Uuid,
    pub of: Attribution,
    /// What the version that serves counts, then what the one before it counted and the next one will: their events come
    /// late, and before the switch. Empty where none of them counts anything of its own.
    pub metering: Vec<Metering>,
}

/// Those of these instances that the project has.
pub async fn of(
    conn: &mut PgConnection,
    project: Uuid,
    instances: &[Uuid],
) -> sqlx::Result<Vec<UsageSubject>> {
    let rows = sqlx::query!(
        r#"select i.id, i.org_id, i.project_id, i.allocation_id, i.app_slug, i.operating_mode, i.control_plane_scope,
                  i.runtime_backend, control_plane_component(v.manifest) as component,
                  array(select near.manifest #> '{version,metering}' from app_versions near
                        where near.app_id = a.id and near.version in (i.version, i.previous_version, i.target_version)
                          and near.manifest #> '{version,metering}' is not null
                        order by near.version <> i.version) as "metering!: Vec<Json<Metering>>"
           from app_instances i
           left join apps a on a.slug = i.app_slug
           left join app_versions v on v.app_id = a.id and v.version = i.version
           where i.id = any($2) and i.project_id = $1"#,
        project,
        instances
    )
    .fetch_all(conn)
    .await?;
    let mut subjects = Vec::with_capacity(rows.len());
    for row in rows {
        let of = Attribution {
            org_id: row.org_id,
            project_id: row.project_id,
            app_instance_id: Some(row.id),
            allocation_id: row.allocation_id,
            app_slug: Some(row.app_slug),
            operating_mode: Some(row.operating_mode),
            control_plane_scope: Some(row.control_plane_scope),
            runtime_backend: Some(row.runtime_backend),
            control_plane_component: row.component,
        };
        let metering = row.metering.into_iter().map(|Json(metering)| metering).collect();
        subjects.push(UsageSubject { instance: row.id, of, metering });
    }
    Ok(subjects)
}
