//! Numbers the events of a project: without gaps, and causes before their effects.
//!
//! An event is numbered once it is visible, never when it is inserted: of two transactions the one that inserted first
//! may commit last. What committed before another transaction began is visible whenever the other's events are, and was
//! inserted before them, so numbering what is visible in the order of inserting keeps causality.

use sqlx::PgConnection;
use uuid::Uuid;

/// The projects that have events without a number.
pub async fn waiting(conn: &mut PgConnection) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!("select distinct project_id from outbox where seq is null").fetch_all(conn).await
}

/// Events of one type that were given their numbers.
#[derive(Clone, Debug)]
pub struct Numbered {
    pub kind: String,
    pub events: i64,
}

/// Numbers up to `most` events of the project and answers what it found. The two statements must not become one: the
/// second sees the database as it is once the counter is held, so nobody else's numbers are missed.
pub async fn number(conn: &mut PgConnection, project: Uuid, most: i64) -> sqlx::Result<Vec<Numbered>> {
    let last = sqlx::query_scalar!(
        "insert into event_counters (project_id) values ($1)
         on conflict (project_id) do update set last_seq = event_counters.last_seq returning last_seq",
        project
    )
    .fetch_one(&mut *conn)
    .await?;
    sqlx::query_as!(
        Numbered,
        r#"with batch as (
             select id, row_number() over (order by pos) as place
             from (select id, pos from outbox where project_id = $1 and seq is null order by pos limit $3) visible
         ), numbered as (
             update outbox set seq = $2 + batch.place from batch where outbox.id = batch.id returning outbox.type
         ), counted as (
             update event_counters set last_seq = $2 + (select count(*) from numbered) where project_id = $1
         )
         select type as kind, count(*) as "events!" from numbered group by type"#,
        project,
        last,
        most
    )
    .fetch_all(conn)
    .await
}
