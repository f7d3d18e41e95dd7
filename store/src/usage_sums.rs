//! Usage in sums: by hour, day or month, and by whatever columns are asked for.

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use sqlx::{PgConnection, Postgres, QueryBuilder};
use uuid::Uuid;

use crate::usage_records::Filter;

/// How wide the sums are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Hour,
    Day,
    Month,
}

impl Width {
    pub const fn as_str(self) -> &'static str {
        match self {
            Width::Hour => "hour",
            Width::Day => "day",
            Width::Month => "month",
        }
    }

    /// What stands before and after a moment in a query to make it the beginning of its window. Only months need the calendar,
    /// which costs more than the rest of a sum.
    const fn beginning_of(self) -> (&'static str, &'static str) {
        match self {
            Width::Hour => ("date_bin('1 hour', ", ", '2000-01-01 00:00:00+00')"),
            Width::Day => ("date_bin('1 day', ", ", '2000-01-01 00:00:00+00')"),
            Width::Month => ("date_trunc('month', ", ", 'UTC')"),
        }
    }
}

/// A column by which sums are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    UsageSource,
    UsageUnit,
    AppInstance,
    Allocation,
    AppSlug,
}

impl GroupBy {
    pub const ALL: [GroupBy; 5] = [
        GroupBy::UsageSource,
        GroupBy::UsageUnit,
        GroupBy::AppInstance,
        GroupBy::Allocation,
        GroupBy::AppSlug,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            GroupBy::UsageSource => "usage_source",
            GroupBy::UsageUnit => "usage_unit",
            GroupBy::AppInstance => "app_instance_id",
            GroupBy::Allocation => "allocation_id",
            GroupBy::AppSlug => "app_slug",
        }
    }

    /// What stands in a query where it was not asked for.
    const fn nothing(self) -> &'static str {
        match self {
            GroupBy::AppInstance | GroupBy::Allocation => "null::uuid",
            GroupBy::UsageSource | GroupBy::UsageUnit | GroupBy::AppSlug => "null::text",
        }
    }
}

/// The sum of one unit; units are never added to each other.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct UnitSum {
    pub start: DateTime<Utc>,
    pub stop: DateTime<Utc>,
    pub usage_source: Option<String>,
    pub app_instance_id: Option<Uuid>,
    pub allocation_id: Option<Uuid>,
    pub app_slug: Option<String>,
    pub usage_unit: String,
    pub quantity: i64,
    pub amount_minor: i64,
    pub currency: Option<String>,
    pub rated: bool,
}

/// Where a page of sums begins, and how many windows it holds; each comes whole.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    pub after: Option<DateTime<Utc>>,
    pub windows: i64,
}

/// Ordered by window, then by the columns asked for, then by unit. What is rated is read from the hours, and where only a
/// piece of an hour is asked for, from its windows; what is not, from the few windows that are open.
pub async fn list(
    conn: &mut PgConnection,
    filter: &Filter,
    width: Width,
    by: &[GroupBy],
    stretch: Stretch,
) -> sqlx::Result<Vec<UnitSum>> {
    let Some(filter) = page(conn, filter, width, stretch).await? else { return Ok(Vec::new()) };
    // Read through an array, of which the planner expects ten: what it knows of the table is often from before a rollup, and it
    // would join every window there is with the few that are open.
    let mut query = QueryBuilder::new(
        "with open as materialized (
             select o.* from (select array_agg(o.window_start) as starts, array_agg(o.window_end) as ends from open_windows o",
    );
    Filter { instance: None, source: None, ..filter.clone() }.narrow(&mut query, "o", "window_start");
    query.push(") a cross join lateral unnest(a.starts, a.ends) o (window_start, window_end)), used as (");
    // Each part is summed by itself: what is added up in the end are few rows, whatever the planner expects.
    columns(&mut query, width, by, "h", "hour");
    query.push(
        ", sum(h.quantity)::bigint as quantity, sum(h.unpriced)::bigint as unpriced,
            sum(h.amount_minor)::bigint as amount_minor, false as open from usage_hours h",
    );
    let (hours, pieces) = cut(&filter);
    hours.narrow(&mut query, "h", "hour");
    grouped(&mut query, by, "h");
    for piece in &pieces {
        query.push(" union all ");
        columns(&mut query, width, by, "u", "window_start");
        query.push(
            ", sum(u.quantity)::bigint, sum(case when u.price_id is null then u.quantity else 0 end)::bigint,
                sum(u.amount_minor)::bigint, false from usage_windows u",
        );
        piece.narrow(&mut query, "u", "window_start");
        grouped(&mut query, by, "u");
        query.push(" union all ");
        columns(&mut query, width, by, "u", "window_start");
        query.push(
            ", 0, 0, -sum(e.amount_minor)::bigint, false from ledger_entries e join usage_windows u
                 on (u.project_id, u.window_start, u.window_end, u.usage_source, u.usage_unit)
                     = (e.project_id, e.window_start, e.window_end, e.usage_source, e.usage_unit)
                 and u.app_instance_id is not distinct from e.app_instance_id
                 and u.allocation_id is not distinct from e.allocation_id",
        );
        piece.narrow(&mut query, "e", "window_start");
        query.push(" and e.kind = 'adjustment'");
        grouped(&mut query, by, "u");
    }
    let whenever = Filter { from: None, to: None, ..filter };
    query.push(" union all ");
    columns(&mut query, width, by, "r", "window_start");
    query.push(
        ", sum(r.quantity)::bigint, 0, 0, true from open o join usage_records r using (window_start, window_end)",
    );
    whenever.narrow(&mut query, "r", "window_start");
    grouped(&mut query, by, "r");
    // An open window that was rated before is in its hour already.
    query.push(" union all ");
    columns(&mut query, width, by, "u", "window_start");
    query.push(
        ", -sum(u.quantity)::bigint, 0, 0, true from open o join usage_windows u using (window_start, window_end)",
    );
    whenever.narrow(&mut query, "u", "window_start");
    grouped(&mut query, by, "u");
    query.push(") select start, start + ('1 ' || ").push_bind(width.as_str()).push(")::interval as stop");
    for column in COLUMNS {
        let name = column.as_str();
        let shown = if by.contains(&column) { name } else { column.nothing() };
        query.push(format_args!(", {shown} as {name}"));
    }
    query.push(
        ", usage_unit, sum(quantity)::bigint as quantity, sum(amount_minor)::bigint as amount_minor,
            (select currency from prices limit 1) as currency, sum(unpriced) = 0 and not bool_or(open) as rated from used",
    );
    for clause in [" group by start", " order by start"] {
        query.push(clause);
        for column in asked(by) {
            query.push(format_args!(", {}", column.as_str()));
        }
        query.push(", usage_unit");
    }
    query.build_query_as().fetch_all(conn).await
}

/// The filter, narrowed to the next windows in which anything was used. They are found one after the other by key, so that
/// nothing beyond the page is read, however long the past is.
async fn page(
    conn: &mut PgConnection,
    filter: &Filter,
    width: Width,
    stretch: Stretch,
) -> sqlx::Result<Option<Filter>> {
    let mut query = QueryBuilder::new("with recursive open as materialized (");
    open(&mut query, filter);
    query.push("), page (start, number) as (select ");
    next(&mut query, filter, width, |query| match stretch.after {
        Some(after) => {
            query.push_bind(after).push(" + ('1 ' || ").push_bind(width.as_str()).push(")::interval");
        }
        None => _ = query.push("'-infinity'::timestamptz"),
    });
    query.push(", 1 union all select ");
    next(&mut query, filter, width, |query| {
        query.push("page.start + ('1 ' || ").push_bind(width.as_str()).push(")::interval");
    });
    query.push(", number + 1 from page where start is not null and number < ").push_bind(stretch.windows);
    query.push(") select min(start), max(start) + ('1 ' || ").push_bind(width.as_str());
    query.push(")::interval from page");
    let (first, end): (Option<DateTime<Utc>>, Option<DateTime<Utc>>) =
        query.build_query_as().fetch_one(conn).await?;
    Ok(first.zip(end).map(|(first, end)| Filter {
        from: Some(filter.from.map_or(first, |from| from.max(first))),
        to: Some(filter.to.map_or(end, |to| to.min(end))),
        ..filter.clone()
    }))
}

/// The first window at or after a moment in which anything was used.
fn next(
    query: &mut QueryBuilder<Postgres>,
    filter: &Filter,
    width: Width,
    moment: impl Fn(&mut QueryBuilder<Postgres>),
) {
    let (hours, pieces) = cut(filter);
    let (before, after) = width.beginning_of();
    query.push(before).push("least((select min(h.hour) from usage_hours h");
    hours.narrow(query, "h", "hour");
    query.push(" and h.hour >= ");
    moment(query);
    for piece in &pieces {
        query.push("), (select min(u.window_start) from usage_windows u");
        piece.narrow(query, "u", "window_start");
        query.push(" and u.window_start >= ");
        moment(query);
    }
    query.push("), (select o.window_start from open o where o.window_start >= ");
    moment(query);
    query.push(" limit 1))").push(after);
}

/// The open windows in which anything of this was used, the first first. Every one holds something; of one instance or source,
/// a look into each is needed, which is taken once it is reached.
fn open(query: &mut QueryBuilder<Postgres>, filter: &Filter) {
    query.push("select o.window_start from (select o.window_start, o.window_end from open_windows o");
    Filter { instance: None, source: None, ..filter.clone() }.narrow(query, "o", "window_start");
    query.push(" order by o.window_start offset 0) o");
    if filter.instance.is_some() || filter.source.is_some() {
        query.push(" cross join lateral (select from usage_records r");
        Filter { from: None, to: None, ..filter.clone() }.narrow(query, "r", "window_start");
        query.push(" and (r.window_start, r.window_end) = (o.window_start, o.window_end) limit 1) r");
    }
}

/// The hours that lie wholly within what is asked for, and the pieces of hours before and after them.
fn cut(filter: &Filter) -> (Filter, Vec<Filter>) {
    const HOUR: TimeDelta = TimeDelta::hours(1);
    let floor = |moment: DateTime<Utc>| moment.duration_trunc(HOUR).unwrap_or(moment);
    let ceiling = |moment: DateTime<Utc>| if floor(moment) < moment { floor(moment) + HOUR } else { moment };
    let (first, last) = (filter.from.map(ceiling), filter.to.map(floor));
    let between = |from, to| Filter { from, to, ..filter.clone() };
    let mut pieces = match first.zip(last) {
        Some((first, last)) if first > last => vec![filter.clone()],
        _ => vec![between(filter.from, first), between(last, filter.to)],
    };
    pieces.retain(|piece| piece.from.zip(piece.to).is_some_and(|(from, to)| from < to));
    (between(first, last), pieces)
}

/// The columns that sums may be told apart by, in their order; the unit always does.
const COLUMNS: [GroupBy; 4] =
    [GroupBy::UsageSource, GroupBy::AppInstance, GroupBy::Allocation, GroupBy::AppSlug];

fn asked(by: &[GroupBy]) -> impl Iterator<Item = GroupBy> {
    COLUMNS.into_iter().filter(|column| by.contains(column))
}

/// The window, each column that was asked for, and the unit.
fn columns(query: &mut QueryBuilder<Postgres>, width: Width, by: &[GroupBy], table: &str, moment: &str) {
    let (before, after) = width.beginning_of();
    query.push(format_args!("select {before}{table}.{moment}{after} as start"));
    for column in asked(by) {
        let name = column.as_str();
        query.push(format_args!(", {table}.{name} as {name}"));
    }
    query.push(format_args!(", {table}.usage_unit"));
}

/// By what `columns` chose.
fn grouped(query: &mut QueryBuilder<Postgres>, by: &[GroupBy], table: &str) {
    query.push(" group by 1");
    for column in asked(by) {
        query.push(format_args!(", {table}.{}", column.as_str()));
    }
    query.push(format_args!(", {table}.usage_unit"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(from: Option<i64>, to: Option<i64>) -> (String, Vec<String>) {
        let at = |minute: Option<i64>| minute.and_then(|minute| DateTime::from_timestamp(minute * 60, 0));
        let told = |filter: &Filter| {
            let minute =
                |at: Option<DateTime<Utc>>| at.map_or("-".to_owned(), |at| (at.timestamp() / 60).to_string());
            format!("{}..{}", minute(filter.from), minute(filter.to))
        };
        let filter =
            Filter { project: Uuid::nil(), instance: None, source: None, from: at(from), to: at(to) };
        let (hours, pieces) = cut(&filter);
        (told(&hours), pieces.iter().map(told).collect())
    }

    #[test]
    fn hours_and_pieces_of_hours_are_together_what_was_asked_for() {
        let told = |hours: &str, pieces: &[&str]| {
            (hours.to_owned(), pieces.iter().map(|piece| (*piece).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(cuts(None, None), told("-..-", &[]));
        assert_eq!(cuts(Some(60), Some(180)), told("60..180", &[]));
        assert_eq!(cuts(Some(30), None), told("60..-", &["30..60"]));
        assert_eq!(cuts(Some(30), Some(200)), told("60..180", &["30..60", "180..200"]));
        assert_eq!(cuts(Some(70), Some(80)), told("120..60", &["70..80"]));
        assert_eq!(cuts(Some(80), Some(70)), told("120..60", &[]));
    }
}
