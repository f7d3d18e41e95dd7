//! `GET /billing/usage`: records as they were told, or with `window` sums of them and what they cost. As CSV on `Accept`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api_types::{Page, UsageItem, UsagePage, UsageRecord, UsageSum, UsageWindow};
use axum::extract::State as Shared;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use domain::{ErrorCode, UsageSource};
use sqlx::PgConnection;
use store::usage_records::{self, Filter};
use store::usage_sums::{self, GroupBy, Stretch, UnitSum, Width};
use utoipa::PartialSchema;
use utoipa::openapi::schema::KnownFormat;
use uuid::Uuid;

use super::{Whose, rated_until};
use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_as, word};
use crate::error::ApiError;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::state::State;

const MOMENT: &str = "an RFC 3339 time such as 2026-01-31T12:00:00Z";
const GROUPS: &str = "a list of usage_source, usage_unit, app_instance_id, allocation_id, app_slug";

pub(crate) fn usage() -> Endpoint {
    Endpoint::new("get_usage", "What was used: records, or sums with what they cost", read)
        .of_a_project()
        .query("project_id", text_as(KnownFormat::Uuid), "The project.")
        .query("app_instance_id", text_as(KnownFormat::Uuid), "Only this instance; names the project too.")
        .query("usage_source", UsageSource::schema(), "Only usage of this kind of thing.")
        .query("from", text_as(KnownFormat::DateTime), "Only windows that begin then or later.")
        .query("to", text_as(KnownFormat::DateTime), "Only windows that begin before.")
        .query("window", UsageWindow::schema(), "Sums of this width, in UTC; without it, records.")
        .query(
            "group_by",
            word(),
            "With `window`: the columns, separated by commas, by which sums are told apart.",
        )
        .pages()
        .answers::<UsagePage>(200, "A page of usage; `limit` counts records, or windows of sums.")
        .also_as("text/csv")
        .refuses(&[ErrorCode::ProjectNotFound, ErrorCode::AppInstanceNotFound])
}

async fn read(
    Shared(state): Shared<State>,
    caller: Caller,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, ApiError> {
    let paging = Paging::read(&mut params, "use1");
    let whose = Whose::read(&mut params, &headers);
    let source = params.parsed("usage_source", "allocation or app_runtime");
    let (from, to) = (params.parsed("from", MOMENT), params.parsed("to", MOMENT));
    let width = params.parsed::<Words<Width>>("window", "hour, day or month").map(|word| word.0);
    let by: Vec<GroupBy> =
        params.list::<Words<GroupBy>>("group_by", GROUPS).into_iter().map(|word| word.0).collect();
    if width.is_none() && !by.is_empty() {
        params.problem("group_by", "needs a window");
    }
    params.finish()?;
    let mut tx = state.read().await?;
    let (_, project) = whose.place(&state, &mut tx, &caller).await?;
    let filter = Filter { project, instance: whose.instance, source, from, to };
    let page = match width {
        Some(width) => sums(&mut tx, &filter, width, &by, &paging).await?,
        None => records(&mut tx, &filter, &paging).await?,
    };
    let rated_until = rated_until(&mut tx, project).await?;
    tx.rollback().await?;
    let usage = UsagePage { items: page.items, next_cursor: page.next_cursor, rated_until };
    if wants_csv(&headers) { as_csv(&usage) } else { Ok(Json(usage).into_response()) }
}

async fn records(
    conn: &mut PgConnection,
    filter: &Filter,
    paging: &Paging,
) -> Result<Page<UsageItem>, ApiError> {
    let rows = usage_records::list(conn, filter, paging.slice()).await?;
    Ok(paging.page(rows, |row| row.id, |row| UsageItem::Record(Box::new(shown(row)))))
}

/// A cursor of sums is the second in which their last window begins.
async fn sums(
    conn: &mut PgConnection,
    filter: &Filter,
    width: Width,
    by: &[GroupBy],
    paging: &Paging,
) -> Result<Page<UsageItem>, ApiError> {
    let after = paging.after.and_then(|id| DateTime::from_timestamp(i64::try_from(id.as_u128()).ok()?, 0));
    let stretch = Stretch { after, windows: paging.rows() };
    let units = usage_sums::list(conn, filter, width, by, stretch).await?;
    let mut windows: Vec<(DateTime<Utc>, Vec<UsageSum>)> = Vec::new();
    for sum in grouped(units, by) {
        match windows.last_mut() {
            Some((start, of_window)) if *start == sum.window_start => of_window.push(sum),
            _ => windows.push((sum.window_start, vec![sum])),
        }
    }
    let place = |(start, _): &(DateTime<Utc>, Vec<UsageSum>)| {
        Uuid::from_u128(start.timestamp().unsigned_abs().into())
    };
    let page = paging.page(windows, place, |(_, sums)| sums);
    let items = page.items.into_iter().flatten().map(UsageItem::Sum).collect();
    Ok(Page { items, next_cursor: page.next_cursor })
}

/// Units next to each other become one sum, unless they were to be told apart.
fn grouped(units: Vec<UnitSum>, by: &[GroupBy]) -> Vec<UsageSum> {
    let mut sums: Vec<UsageSum> = Vec::new();
    for unit in units {
        let quantity = (unit.usage_unit.clone(), unit.quantity);
        let (amount_minor, rated) = (unit.amount_minor, unit.rated);
        let next = UsageSum {
            window_start: unit.start,
            window_end: unit.stop,
            quantities: BTreeMap::from([quantity.clone()]),
            amount_minor,
            currency: unit.currency,
            rated,
            usage_source: unit.usage_source.and_then(|word| word.parse().ok()),
            usage_unit: by.contains(&GroupBy::UsageUnit).then_some(unit.usage_unit),
            app_instance_id: unit.app_instance_id,
            allocation_id: unit.allocation_id,
            app_slug: unit.app_slug,
        };
        match sums.last_mut().filter(|last| key(last) == key(&next)) {
            Some(last) => {
                last.quantities.extend([quantity]);
                last.amount_minor += amount_minor;
                last.rated &= rated;
                last.currency = last.currency.take().or(next.currency);
            }
            None => sums.push(next),
        }
    }
    sums
}

type Key<'a> =
    (DateTime<Utc>, Option<UsageSource>, Option<&'a str>, Option<Uuid>, Option<Uuid>, Option<&'a str>);

fn key(sum: &UsageSum) -> Key<'_> {
    let (unit, slug) = (sum.usage_unit.as_deref(), sum.app_slug.as_deref());
    (sum.window_start, sum.usage_source, unit, sum.app_instance_id, sum.allocation_id, slug)
}

pub(super) fn shown(row: usage_records::UsageRecord) -> UsageRecord {
    UsageRecord {
        id: row.id,
        org_id: row.org_id,
        project_id: row.project_id,
        app_instance_id: row.app_instance_id,
        allocation_id: row.allocation_id,
        app_slug: row.app_slug,
        usage_source: row.usage_source.parse().unwrap_or(UsageSource::AppRuntime),
        usage_unit: row.usage_unit,
        quantity: row.quantity,
        occurred_at: row.occurred_at,
        window_start: row.window_start,
        window_end: row.window_end,
        operating_mode: row.operating_mode,
        control_plane_scope: row.control_plane_scope,
        runtime_backend: row.runtime_backend,
        control_plane_component: row.control_plane_component,
        correlation_id: row.correlation_id,
        reference_id: row.reference_id,
        metadata: row.metadata,
        source: Some(row.source),
        event_id: Some(row.event_id),
        recorded_at: row.recorded_at,
        sku: row.sku,
        price_id: row.price_id,
        rated_quantity: row.rated_quantity,
        rated: row.rated,
    }
}

/// A word of a closed list, as a parameter has it.
struct Words<T>(T);

impl std::str::FromStr for Words<Width> {
    type Err = ();
    fn from_str(word: &str) -> Result<Self, ()> {
        [Width::Hour, Width::Day, Width::Month]
            .into_iter()
            .find(|one| one.as_str() == word)
            .map(Words)
            .ok_or(())
    }
}

impl std::str::FromStr for Words<GroupBy> {
    type Err = ();
    fn from_str(word: &str) -> Result<Self, ()> {
        GroupBy::ALL.into_iter().find(|one| one.as_str() == word).map(Words).ok_or(())
    }
}

fn wants_csv(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept.split(',').any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/csv")
}

/// The items as a table with their own fields as columns; where the next page starts is a header.
fn as_csv(usage: &UsagePage) -> Result<Response, ApiError> {
    let rows: Result<Vec<serde_json::Value>, _> = usage.items.iter().map(serde_json::to_value).collect();
    let rows = rows.map_err(|error| ApiError::internal(&error))?;
    let mut columns: Vec<&str> = Vec::new();
    for name in rows.iter().filter_map(|row| row.as_object()).flat_map(|row| row.keys()) {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let mut text = columns.join(",") + "\r\n";
    for row in &rows {
        let cells: Vec<String> = columns.iter().map(|name| cell(&row[*name])).collect();
        let _ = write!(text, "{}\r\n", cells.join(","));
    }
    let mut response = ([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], text).into_response();
    if let Some(next) = usage.next_cursor.as_deref().and_then(|next| HeaderValue::from_str(next).ok()) {
        response.headers_mut().insert(HeaderName::from_static("x-next-cursor"), next);
    }
    Ok(response)
}

/// Quoted where needed. What a spreadsheet would take for a formula is kept from being one.
fn cell(value: &serde_json::Value) -> String {
    let text = match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text =
        if text.starts_with(['=', '+', '-', '@']) && value.is_string() { format!("'{text}") } else { text };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_cannot_break_out_of_their_column_or_become_formulas() {
        assert_eq!(cell(&json!(null)), "");
        assert_eq!(cell(&json!(-7)), "-7");
        assert_eq!(cell(&json!("a,\"b\"")), "\"a,\"\"b\"\"\"");
        assert_eq!(cell(&json!("=cmd()")), "'=cmd()");
    }
}
