//! How far each project's events were passed on to the stream outside.

use sqlx::PgConnection;
use uuid::Uuid;

/// How far the events of one project were passed on.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    /// The number of the last event that was.
    pub position: i64,
    /// When the stream was made that took it; not known of one that took it before this was noted.
    pub stream_made: Option<i64>,
}

/// The projects that have events which were not passed on to the stream that was made then.
pub async fn behind(conn: &mut PgConnection, stream_made: i64) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select c.project_id from event_counters c left join event_relays r on r.project_id = c.project_id
         where c.last_seq > coalesce(r.position, 0)
            or (r.project_id is not null and r.stream_made is distinct from $1)
         order by c.project_id",
        stream_made
    )
    .fetch_all(conn)
    .await
}

/// How far it is, held until the transaction ends; `None` while another holds it.
pub async fn hold(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Option<Reached>> {
    sqlx::query!("insert into event_relays (project_id) values ($1) on conflict do nothing", project)
        .execute(&mut *conn)
        .await?;
    sqlx::query_as!(
        Reached,
        "select position, stream_made from event_relays where project_id = $1 for update skip locked",
        project
    )
    .fetch_optional(conn)
    .await
}

pub async fn reached(
    conn: &mut PgConnection,
    project: Uuid,
    position: i64,
    stream_made: i64,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update event_relays set position = $2, stream_made = $3 where project_id = $1",
        project,
        position,
        stream_made
    )
    .execute(conn)
    .await
    .map(drop)
}
