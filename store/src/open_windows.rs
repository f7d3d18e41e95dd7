//! Windows that hold usage nobody has rated yet. Whoever rates one takes its row away first, and so waits for everybody who
//! is adding to it; whoever adds later opens it again.

use chrono::{DateTime, Utc};
use domain::{UsageSource, Window};
use sqlx::PgConnection;
use uuid::Uuid;

/// When the first of them begins.
pub async fn oldest(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Option<DateTime<Utc>>> {
    sqlx::query_scalar!("select min(window_start) from open_windows where project_id = $1", project)
        .fetch_one(conn)
        .await
}

#[derive(Clone, Copy, Debug)]
pub struct OpenWindow {
    pub project_id: Uuid,
    pub window: Window,
}

/// The windows that are taken at once hold so many records together, or are a single one.
const RECORDS: i64 = 20_000;

/// Takes windows that are over, project by project and oldest first. One to which somebody is adding is left for the next
/// time.
pub async fn take(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<OpenWindow>> {
    let rows = sqlx::query!(
        "with due as (
             select project_id, window_start, window_end from open_windows where window_end <= engine.now()
             order by project_id, window_start limit $1 for update skip locked),
         sized as (
             select d.*, (select count(*) from usage_records r where r.project_id = d.project_id
                 and r.window_start = d.window_start and r.window_end = d.window_end) as records from due d),
         summed as (
             select s.*, sum(s.records) over (order by s.project_id, s.window_start, s.window_end) as so_far,
                    row_number() over (order by s.project_id, s.window_start, s.window_end) as place from sized s)
         delete from open_windows o using summed d
         where o.project_id = d.project_id and o.window_start = d.window_start and o.window_end = d.window_end
           and (d.so_far <= $2::bigint or d.place = 1)
         returning o.project_id, o.window_start, o.window_end",
        limit,
        RECORDS
    )
    .fetch_all(conn)
    .await?;
    let open = |project_id, start, end| OpenWindow { project_id, window: Window { start, end } };
    Ok(rows.into_iter().map(|row| open(row.project_id, row.window_start, row.window_end)).collect())
}

/// Opens every rated window of this unit that begins at a moment or later, so that what it holds of the unit is rated
/// again: a batch above `after`. Answers where the batch ended; `None` when there is no more.
pub async fn open_again(
    conn: &mut PgConnection,
    (source, unit): (UsageSource, &str),
    from: DateTime<Utc>,
    after: Option<OpenWindow>,
    limit: i64,
) -> sqlx::Result<Option<OpenWindow>> {
    let last = sqlx::query!(
        r#"with batch as (
               select distinct project_id, window_start, window_end from usage_windows
               where usage_source = $1 and usage_unit = $2 and window_start >= $3
                 and ($4::uuid is null or (project_id, window_start, window_end) > ($4, $5, $6))
               order by project_id, window_start, window_end limit $7),
           opened as (
               insert into open_windows as o (project_id, window_start, window_end) select * from batch
               on conflict (project_id, window_start, window_end) do update set touched = o.touched + 1),
           asked as (
               update usage_windows u set again = true from batch b
               where (u.project_id, u.window_start, u.window_end) = (b.project_id, b.window_start, b.window_end)
                 and u.usage_source = $1 and u.usage_unit = $2)
           select project_id as "project_id!", window_start as "start!", window_end as "end!" from batch
           order by project_id desc, window_start desc, window_end desc limit 1"#,
        source.as_str(),
        unit,
        from,
        after.map(|after| after.project_id),
        after.map(|after| after.window.start),
        after.map(|after| after.window.end),
        limit
    )
    .fetch_optional(conn)
    .await?;
    Ok(last.map(|row| OpenWindow {
        project_id: row.project_id,
        window: Window { start: row.start, end: row.end },
    }))
}
