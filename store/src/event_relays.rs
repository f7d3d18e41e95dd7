//! How far each project's events were passed on to the stream outside.

use sqlx::PgConnection;
use uuid::Uuid;

/// The projects that have events which were not passed on.
pub async fn behind(conn: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select c.project_id from event_counters c left join event_relays r on r.project_id = c.project_id
         where c.last_seq > coalesce(r.position, 0) order by c.project_id"
    )
    .fetch_all(conn)
    .await
}

/// The number of the last event that was passed on, held until the transaction ends; `None` while another holds it.
pub async fn hold(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Option<i64>> {
    sqlx::query!("insert into event_relays (project_id) values ($1) on conflict do nothing", project)
        .execute(&mut *conn)
        .await?;
    sqlx::query_scalar!(
        "select position from event_relays where project_id = $1 for update skip locked",
        project
    )
    .fetch_optional(conn)
    .await
}

pub async fn reached(conn: &mut PgConnection, project: Uuid, position: i64) -> sqlx::Result<()> {
    sqlx::query!("update event_relays set position = $2 where project_id = $1", project, position)
        .execute(conn)
        .await
        .map(drop)
}
