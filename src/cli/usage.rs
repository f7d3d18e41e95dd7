//! `gpuaas usage`: what was used and what it cost, by the hour, the day or the month; without a window every record as it was
//! told. `-o csv` is for spreadsheets.

use api_types::{UsageItem, UsagePage, UsageRecord, UsageSum};
use clap::Args;

use super::client::Client;
use super::output::{self, Format};
use super::pick;
use super::workflows::word;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct UsageArgs {
    /// Only this instance, by its name, its id or the beginning of it
    instance: Option<String>,
    /// How wide sums are; `none` lists records
    #[arg(long, default_value = "day", value_parser = ["hour", "day", "month", "none"])]
    window: String,
    #[arg(
        help = "What sums are told apart by, separated by commas: usage_source, usage_unit, app_instance_id, allocation_id, app_slug",
        long,
        value_name = "COLUMNS",
        default_value = "app_slug"
    )]
    by: String,
    /// Only usage of this kind of thing
    #[arg(long, value_parser = ["allocation", "app_runtime"])]
    source: Option<String>,
    /// Only windows that begin at this RFC 3339 time or later
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only windows that begin before this time
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

pub async fn run(args: &UsageArgs, client: &Client, format: Format) -> Result<(), Failure> {
    let instance = match &args.instance {
        Some(text) => Some(pick::instance(client, text).await?.id.to_string()),
        None => None,
    };
    let sums = args.window != "none";
    let mut query = vec![("project_id", client.project()?.to_owned())];
    for (name, value) in [
        ("app_instance_id", &instance),
        ("usage_source", &args.source),
        ("from", &args.from),
        ("to", &args.to),
        ("window", &sums.then(|| args.window.clone())),
        ("group_by", &sums.then(|| args.by.clone())),
    ] {
        query.extend(value.clone().map(|value| (name, value)));
    }
    let usage = all(client, &query).await?;
    let rows: Vec<Vec<String>> = usage.items.iter().map(row).collect();
    let heading: &[&str] = if sums {
        &["window", "of", "used", "amount", "in the ledger"]
    } else {
        &["id", "at", "source", "quantity", "unit", "of", "in the ledger"]
    };
    output::print(format, heading, &rows, &usage)?;
    if format == Format::Table {
        output::say(&format!("in the ledger until {}", usage.rated_until.format("%Y-%m-%dT%H:%M:%SZ")));
    }
    Ok(())
}

/// Page by page, as one answer.
async fn all(client: &Client, query: &[(&str, String)]) -> Result<UsagePage, Failure> {
    let mut query = query.to_vec();
    query.push(("limit", "200".to_owned()));
    let mut usage: UsagePage = client.get("/api/v1/billing/usage", &query).await?;
    while let Some(cursor) = usage.next_cursor.take() {
        let mut next = query.clone();
        next.push(("cursor", cursor));
        let page: UsagePage = client.get("/api/v1/billing/usage", &next).await?;
        usage.items.extend(page.items);
        (usage.next_cursor, usage.rated_until) = (page.next_cursor, page.rated_until);
    }
    Ok(usage)
}

fn row(item: &UsageItem) -> Vec<String> {
    match item {
        UsageItem::Sum(sum) => sum_row(sum),
        UsageItem::Record(record) => record_row(record),
    }
}

fn sum_row(sum: &UsageSum) -> Vec<String> {
    let of = [
        sum.app_slug.clone(),
        sum.usage_source.as_ref().map(word),
        sum.usage_unit.clone(),
        sum.app_instance_id.map(|id| id.to_string()),
        sum.allocation_id.map(|id| id.to_string()),
    ];
    let of: Vec<String> = of.into_iter().flatten().collect();
    let used: Vec<String> =
        sum.quantities.iter().map(|(unit, quantity)| format!("{quantity} {unit}")).collect();
    vec![
        sum.window_start.format("%Y-%m-%dT%H:%MZ").to_string(),
        if of.is_empty() { "-".to_owned() } else { of.join(" ") },
        used.join(", "),
        sum.currency
            .as_ref()
            .map_or_else(|| "-".to_owned(), |currency| domain::currency::written(sum.amount_minor, currency)),
        yes(sum.rated),
    ]
}

fn record_row(record: &UsageRecord) -> Vec<String> {
    let of = record.app_slug.clone().or_else(|| record.allocation_id.map(|id| id.to_string()));
    vec![
        record.id.to_string(),
        record.occurred_at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
        word(&record.usage_source),
        record.quantity.to_string(),
        record.usage_unit.clone(),
        of.unwrap_or_else(|| "-".to_owned()),
        yes(record.rated),
    ]
}

fn yes(what: bool) -> String {
    if what { "yes" } else { "not yet" }.to_owned()
}
