//! What was used in each window and what was last charged for it, also by the hour. Both are sums of the records and the
//! ledger, kept in the transaction that posts to it.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use domain::rating::{Change, Left, Line, Of, Posting, Series, Used, month_of};
use domain::{UsageSource, Window};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::open_windows::OpenWindow;
use crate::parsed;

/// The sums of these windows as the records have them, in a fixed order.
pub async fn used(conn: &mut PgConnection, windows: &[OpenWindow]) -> sqlx::Result<Vec<(Owner, Used)>> {
    let rows = sqlx::query!(
        r#"select r.org_id, r.project_id, r.window_start, r.window_end, r.usage_source, r.usage_unit, r.app_instance_id,
                  r.allocation_id, max(r.app_slug) as app_slug, max(a.sku) as sku, sum(r.quantity)::bigint as "quantity!"
           from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) w(project_id, window_start, window_end)
           join usage_records r using (project_id, window_start, window_end)
           left join allocations a on r.usage_source = 'allocation' and a.id = r.allocation_id
           group by r.org_id, r.project_id, r.window_start, r.window_end, r.usage_source, r.usage_unit, r.app_instance_id,
                    r.allocation_id
           order by r.org_id, r.project_id, r.window_start, r.window_end, r.usage_source, r.usage_unit, r.app_instance_id,
                    r.allocation_id"#,
        &projects(windows),
        &starts(windows),
        &ends(windows)
    )
    .fetch_all(conn)
    .await?;
    let mut used = Vec::with_capacity(rows.len());
    for row in rows {
        let of = Of {
            usage_source: parsed::<UsageSource>(&row.usage_source)?,
            usage_unit: row.usage_unit,
            app_instance_id: row.app_instance_id,
            allocation_id: row.allocation_id,
        };
        let owner = Owner { org_id: row.org_id, project_id: row.project_id };
        let window = Window { start: row.window_start, end: row.window_end };
        used.push((owner, Used { window, of, app_slug: row.app_slug, sku: row.sku, quantity: row.quantity }));
    }
    Ok(used)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub org_id: Uuid,
    pub project_id: Uuid,
}

/// What these windows of one project were last charged.
pub async fn standing(conn: &mut PgConnection, windows: &[OpenWindow]) -> sqlx::Result<Vec<Line>> {
    let rows = sqlx::query!(
        "select u.window_start, u.window_end, u.usage_source, u.usage_unit, u.app_instance_id, u.allocation_id, u.app_slug,
                u.quantity, u.price_id, u.amount_minor, u.entry_seq, u.again
         from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) w(project_id, window_start, window_end)
         join usage_windows u using (project_id, window_start, window_end)",
        &projects(windows),
        &starts(windows),
        &ends(windows)
    )
    .fetch_all(conn)
    .await?;
    let mut lines = Vec::with_capacity(rows.len());
    for row in rows {
        let of = Of {
            usage_source: parsed::<UsageSource>(&row.usage_source)?,
            usage_unit: row.usage_unit,
            app_instance_id: row.app_instance_id,
            allocation_id: row.allocation_id,
        };
        lines.push(Line {
            window: Window { start: row.window_start, end: row.window_end },
            of,
            app_slug: row.app_slug,
            quantity: row.quantity,
            price_id: row.price_id,
            amount_minor: row.amount_minor,
            entry: row.entry_seq,
            again: row.again,
        });
    }
    Ok(lines)
}

/// How much of each series a project has used, as far as it has a price; read hour by hour.
pub async fn by_series(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<BTreeMap<Series, i64>> {
    let (mut sums, mut from) = (BTreeMap::new(), DateTime::<Utc>::MIN_UTC);
    loop {
        let first = sqlx::query_scalar!(
            "select min(window_start) from usage_windows where project_id = $1
               and window_start >= coalesce($2, '-infinity'::timestamptz)",
            project,
            (from > DateTime::<Utc>::MIN_UTC).then_some(from)
        )
        .fetch_one(&mut *conn)
        .await?;
        let Some(start) = first.map(hour) else { return Ok(sums) };
        from = start + TimeDelta::hours(1);
        let rows = sqlx::query!(
            r#"select usage_source, usage_unit, app_instance_id, allocation_id, price_id as "price_id!",
                      sum(quantity)::bigint as "quantity!"
               from usage_windows
               where project_id = $1 and window_start >= $2 and window_start < $3 and price_id is not null
               group by usage_source, usage_unit, app_instance_id, allocation_id, price_id"#,
            project,
            start,
            from
        )
        .fetch_all(&mut *conn)
        .await?;
        for row in rows {
            let of = Of {
                usage_source: parsed::<UsageSource>(&row.usage_source)?,
                usage_unit: row.usage_unit,
                app_instance_id: row.app_instance_id,
                allocation_id: row.allocation_id,
            };
            let series = Series { of, price_id: row.price_id, month: month_of(start) };
            let sum: &mut i64 = sums.entry(series).or_default();
            *sum = sum.saturating_add(row.quantity);
        }
    }
}

/// Whatever was asked to be rated again in these windows was, but for what was left as it was.
pub async fn rated_again(conn: &mut PgConnection, windows: &[OpenWindow], left: &[Left]) -> sqlx::Result<()> {
    sqlx::query!(
        "update usage_windows u set again = false
         from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) w(project_id, window_start, window_end)
         where u.again and (u.project_id, u.window_start, u.window_end) = (w.project_id, w.window_start, w.window_end)
           and not exists (
               select from unnest($4::timestamptz[], $5::timestamptz[], $6::text[], $7::text[], $8::uuid[], $9::uuid[])
                   l(window_start, window_end, usage_source, usage_unit, app_instance_id, allocation_id)
               where (l.window_start, l.window_end, l.usage_source, l.usage_unit)
                     = (u.window_start, u.window_end, u.usage_source, u.usage_unit)
                 and l.app_instance_id is not distinct from u.app_instance_id
                 and l.allocation_id is not distinct from u.allocation_id)",
        &projects(windows),
        &starts(windows),
        &ends(windows),
        &left.iter().map(|left| left.window.start).collect::<Vec<_>>(),
        &left.iter().map(|left| left.window.end).collect::<Vec<_>>(),
        &left.iter().map(|left| left.of.usage_source.as_str().to_owned()).collect::<Vec<_>>(),
        &left.iter().map(|left| left.of.usage_unit.clone()).collect::<Vec<_>>(),
        &left.iter().map(|left| left.of.app_instance_id).collect::<Vec<_>>() as &[Option<Uuid>],
        &left.iter().map(|left| left.of.allocation_id).collect::<Vec<_>>() as &[Option<Uuid>]
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Keeps the lines as they are now. `entry` of each is the number of its charge.
pub async fn keep(conn: &mut PgConnection, owner: Owner, lines: &[Line]) -> sqlx::Result<()> {
    let all = |field: fn(&Line) -> Option<Uuid>| -> Vec<Option<Uuid>> { lines.iter().map(field).collect() };
    sqlx::query!(
        "insert into usage_windows as u (org_id, project_id, window_start, window_end, usage_source, usage_unit, app_instance_id,
             allocation_id, app_slug, quantity, price_id, amount_minor, entry_seq)
         select $1, $2, * from unnest($3::timestamptz[], $4::timestamptz[], $5::text[], $6::text[], $7::uuid[], $8::uuid[],
             $9::text[], $10::bigint[], $11::uuid[], $12::bigint[], $13::bigint[])
         on conflict (project_id, window_start, window_end, usage_source, usage_unit, app_instance_id, allocation_id)
         do update set quantity = excluded.quantity, price_id = excluded.price_id, amount_minor = excluded.amount_minor,
             entry_seq = excluded.entry_seq",
        owner.org_id,
        owner.project_id,
        &lines.iter().map(|line| line.window.start).collect::<Vec<_>>(),
        &lines.iter().map(|line| line.window.end).collect::<Vec<_>>(),
        &lines.iter().map(|line| line.of.usage_source.as_str().to_owned()).collect::<Vec<_>>(),
        &lines.iter().map(|line| line.of.usage_unit.clone()).collect::<Vec<_>>(),
        &all(|line| line.of.app_instance_id) as &[Option<Uuid>],
        &all(|line| line.of.allocation_id) as &[Option<Uuid>],
        &lines.iter().map(|line| line.app_slug.clone()).collect::<Vec<_>>() as &[Option<String>],
        &lines.iter().map(|line| line.quantity).collect::<Vec<_>>(),
        &all(|line| line.price_id) as &[Option<Uuid>],
        &lines.iter().map(|line| line.amount_minor).collect::<Vec<_>>(),
        &lines.iter().map(|line| line.entry).collect::<Vec<_>>() as &[Option<i64>]
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What the hours gain by a change of lines and by adjustments, which belong to no line.
pub async fn add_to_hours(
    conn: &mut PgConnection,
    project: Uuid,
    changes: &[Change],
    adjustments: &[&Posting],
) -> sqlx::Result<()> {
    let hours: Vec<Hour<'_>> = changes
        .iter()
        .map(Hour::of_change)
        .chain(adjustments.iter().map(|one| Hour::of_adjustment(one)))
        .collect();
    sqlx::query!(
        "insert into usage_hours as h (project_id, hour, usage_source, usage_unit, app_instance_id, allocation_id, app_slug,
             quantity, unpriced, amount_minor)
         select $1, hour, usage_source, usage_unit, app_instance_id, allocation_id, app_slug, sum(quantity), sum(unpriced),
             sum(amount_minor)
         from unnest($2::timestamptz[], $3::text[], $4::text[], $5::uuid[], $6::uuid[], $7::text[], $8::bigint[], $9::bigint[],
             $10::bigint[]) n(hour, usage_source, usage_unit, app_instance_id, allocation_id, app_slug, quantity, unpriced,
             amount_minor)
         group by 2, 3, 4, 5, 6, 7 order by 2, 3, 4, 5, 6, 7
         on conflict (project_id, hour, usage_source, usage_unit, app_instance_id, allocation_id, app_slug)
         do update set quantity = h.quantity + excluded.quantity, unpriced = h.unpriced + excluded.unpriced,
             amount_minor = h.amount_minor + excluded.amount_minor",
        project,
        &hours.iter().map(|hour| hour.start).collect::<Vec<_>>(),
        &hours.iter().map(|hour| hour.of.usage_source.as_str().to_owned()).collect::<Vec<_>>(),
        &hours.iter().map(|hour| hour.of.usage_unit.clone()).collect::<Vec<_>>(),
        &hours.iter().map(|hour| hour.of.app_instance_id).collect::<Vec<_>>() as &[Option<Uuid>],
        &hours.iter().map(|hour| hour.of.allocation_id).collect::<Vec<_>>() as &[Option<Uuid>],
        &hours.iter().map(|hour| hour.app_slug.clone()).collect::<Vec<_>>() as &[Option<String>],
        &hours.iter().map(|hour| hour.quantity).collect::<Vec<_>>(),
        &hours.iter().map(|hour| hour.unpriced).collect::<Vec<_>>(),
        &hours.iter().map(|hour| hour.amount_minor).collect::<Vec<_>>()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What an hour gains.
struct Hour<'a> {
    start: DateTime<Utc>,
    of: &'a Of,
    app_slug: Option<String>,
    quantity: i64,
    unpriced: i64,
    amount_minor: i64,
}

impl Hour<'_> {
    fn of_change(change: &Change) -> Hour<'_> {
        let unpriced = |line: &Line| if line.price_id.is_none() { line.quantity } else { 0 };
        let (line, before) = (&change.line, change.before.as_ref());
        Hour {
            start: hour(line.window.start),
            of: &line.of,
            app_slug: line.app_slug.clone(),
            quantity: line.quantity - before.map_or(0, |before| before.quantity),
            unpriced: unpriced(line) - before.map_or(0, unpriced),
            amount_minor: line.amount_minor - before.map_or(0, |before| before.amount_minor),
        }
    }

    fn of_adjustment(posting: &Posting) -> Hour<'_> {
        let (start, of) = (hour(posting.window.start), &posting.of);
        let (app_slug, amount_minor) = (posting.app_slug.clone(), posting.amount_minor);
        Hour { start, of, app_slug, quantity: 0, unpriced: 0, amount_minor }
    }
}

fn hour(moment: DateTime<Utc>) -> DateTime<Utc> {
    moment.duration_trunc(TimeDelta::hours(1)).unwrap_or(moment)
}

fn projects(windows: &[OpenWindow]) -> Vec<Uuid> {
    windows.iter().map(|open| open.project_id).collect()
}

fn starts(windows: &[OpenWindow]) -> Vec<DateTime<Utc>> {
    windows.iter().map(|open| open.window.start).collect()
}

fn ends(windows: &[OpenWindow]) -> Vec<DateTime<Utc>> {
    windows.iter().map(|open| open.window.end).collect()
}
