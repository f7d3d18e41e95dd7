//! Windows that hold usage nobody has rated yet. Whoever rates one holds its row and takes it away, so nobody is adding to it
//! meanwhile; whoever adds later opens it again. One of which a part cannot be rated stays, and has its turn later.

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

/// Holds windows that are over, project by project and oldest first. One to which somebody is adding is left for the next
/// time, and so are those that were put off and the projects that are set aside. However much is due, only about as many
/// records are counted as are taken.
pub async fn due(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<OpenWindow>> {
    let rows = sqlx::query!(
        r#"with recursive held as materialized (
               select o.project_id, o.window_start, o.window_end from open_windows o
               where o.window_end <= (select engine.now()) and (o.retry_at is null or o.retry_at <= (select engine.now()))
                 and not exists (
                   select from unrated_projects u where u.project_id = o.project_id and u.retry_at > (select engine.now()))
               order by o.project_id, o.window_start, o.window_end limit $1 for update of o skip locked),
           due as materialized (
               select h.*, row_number() over (order by h.project_id, h.window_start, h.window_end) as place from held h),
           taken as (
               select d.project_id, d.window_start, d.window_end, d.place, $2::bigint - (
                   select count(*) from (select from usage_records r where r.project_id = d.project_id
                       and r.window_start = d.window_start and r.window_end = d.window_end limit $2::bigint + 1) few) as left_over
               from due d where d.place = 1
               union all
               select d.project_id, d.window_start, d.window_end, d.place, t.left_over - (
                   select count(*) from (select from usage_records r where r.project_id = d.project_id
                       and r.window_start = d.window_start and r.window_end = d.window_end limit $2::bigint + 1) few)
               from taken t join due d on d.place = t.place + 1 where t.left_over > 0)
           select project_id as "project_id!", window_start as "start!", window_end as "end!" from taken
           where left_over >= 0 or place = 1 order by place"#,
        limit,
        RECORDS
    )
    .fetch_all(conn)
    .await?;
    let open = |project_id, start, end| OpenWindow { project_id, window: Window { start, end } };
    Ok(rows.into_iter().map(|row| open(row.project_id, row.start, row.end)).collect())
}

fn columns(windows: &[OpenWindow]) -> (Vec<Uuid>, Vec<DateTime<Utc>>, Vec<DateTime<Utc>>) {
    windows.iter().map(|open| (open.project_id, open.window.start, open.window.end)).collect()
}

/// Takes windows that are held away.
pub async fn take(conn: &mut PgConnection, windows: &[OpenWindow]) -> sqlx::Result<()> {
    let (projects, starts, ends) = columns(windows);
    sqlx::query!(
        "delete from open_windows o
         using unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) w(project_id, window_start, window_end)
         where (o.project_id, o.window_start, o.window_end) = (w.project_id, w.window_start, w.window_end)",
        &projects,
        &starts,
        &ends
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Leaves windows that are held for later: for a minute at first, then for twice as long each time, up to an hour.
pub async fn put_off(conn: &mut PgConnection, windows: &[OpenWindow]) -> sqlx::Result<()> {
    let (projects, starts, ends) = columns(windows);
    sqlx::query!(
        "update open_windows o set tries = o.tries + 1,
                retry_at = engine.now() + least(interval '1 hour', interval '1 minute' * 2 ^ least(o.tries, 10))
         from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) w(project_id, window_start, window_end)
         where (o.project_id, o.window_start, o.window_end) = (w.project_id, w.window_start, w.window_end)",
        &projects,
        &starts,
        &ends
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Opens every rated window of this unit that begins at a moment or later, so that what it holds of the unit is rated
/// again: a batch above `after`, of which all but the last window hold so many lines. Answers where the batch ended; `None`
/// when there is no more.
///
/// The windows are held before what they were charged is touched, as everybody does who rates, so nobody waits in a circle.
/// The bounds are never null: then they are part of the search whatever plan is made, and no batch reads what is behind it.
pub async fn open_again(
    conn: &mut PgConnection,
    (source, unit): (UsageSource, &str),
    from: DateTime<Utc>,
    after: Option<OpenWindow>,
    limit: i64,
) -> sqlx::Result<Option<OpenWindow>> {
    let rows = sqlx::query!(
        r#"with batch as (
               select distinct project_id, window_start, window_end from (
                   select project_id, window_start, window_end from usage_windows
                   where usage_source = $1 and usage_unit = $2 and window_start >= $3
                     and (project_id, window_start, window_end)
                         > (coalesce($4, '00000000-0000-0000-0000-000000000000'::uuid),
                            coalesce($5, '-infinity'::timestamptz), coalesce($6, '-infinity'::timestamptz))
                   order by project_id, window_start, window_end limit $7) lines),
           opened as (
               insert into open_windows as o (project_id, window_start, window_end)
               select project_id, window_start, window_end from batch order by project_id, window_start, window_end
               on conflict (project_id, window_start, window_end) do update set touched = o.touched + 1, retry_at = null)
           select project_id, window_start, window_end from batch order by project_id, window_start, window_end"#,
        source.as_str(),
        unit,
        from,
        after.map(|after| after.project_id),
        after.map(|after| after.window.start),
        after.map(|after| after.window.end),
        limit
    )
    .fetch_all(&mut *conn)
    .await?;
    let open = |project_id, start, end| OpenWindow { project_id, window: Window { start, end } };
    let batch: Vec<OpenWindow> =
        rows.into_iter().map(|row| open(row.project_id, row.window_start, row.window_end)).collect();
    let (projects, starts, ends) = columns(&batch);
    sqlx::query!(
        "update usage_windows u set again = true
         from unnest($3::uuid[], $4::timestamptz[], $5::timestamptz[]) w(project_id, window_start, window_end)
         where (u.project_id, u.window_start, u.window_end) = (w.project_id, w.window_start, w.window_end)
           and u.usage_source = $1 and u.usage_unit = $2",
        source.as_str(),
        unit,
        &projects,
        &starts,
        &ends
    )
    .execute(conn)
    .await?;
    Ok(batch.last().copied())
}
