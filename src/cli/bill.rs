//! `gpuaas bill`: takes a project's bill along as a file, and checks such a file without any server: that the chain is
//! unbroken, that the balance is its sum, and that every charge follows from the usage that is listed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use api_types::{Balance, Ledger, Price, PriceModel, UsageItem, UsagePage, UsageRecord};
use chrono::NaiveDate;
use clap::{Args, Subcommand};
use domain::UsageSource;
use domain::ledger::{Entry, EntryKind, Head};
use domain::price::Rate;
use domain::rating::month_of;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::client::Client;
use super::output::{self, Format};
use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub enum BillCommand {
    /// Write everything the project was charged for, and why, into one file
    Export(ExportArgs),
    /// Check such a file on this machine, without a server
    Verify(VerifyArgs),
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Where to write it; standard output unless said otherwise
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// All that a bill follows from.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bill {
    pub balance: Balance,
    pub entries: Vec<Entry>,
    pub prices: Vec<Price>,
    pub usage: Vec<UsageRecord>,
}

/// What was found to hold.
#[derive(Debug, Serialize)]
struct Report {
    entries: usize,
    records: usize,
    series: usize,
    balance_minor: i64,
    currency: Option<String>,
    problems: Vec<String>,
}

pub async fn export(args: &ExportArgs, client: &Client) -> Result<(), Failure> {
    let bill = fetch(client).await?;
    let text = serde_json::to_string_pretty(&bill).map_err(Failure::server)? + "\n";
    match &args.to {
        None => output::text(&text),
        Some(file) => {
            fs::write(file, text).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
        }
    }
}

async fn fetch(client: &Client) -> Result<Bill, Failure> {
    let project = client.project()?.to_owned();
    let query = |cursor: &Option<String>| {
        let mut query = vec![("project_id", project.clone()), ("limit", "200".to_owned())];
        query.extend(cursor.clone().map(|cursor| ("cursor", cursor)));
        query
    };
    let (mut entries, mut prices, mut cursor) = (Vec::new(), BTreeMap::new(), None);
    loop {
        let page: Ledger = client.get("/api/v1/billing/ledger", &query(&cursor)).await?;
        entries.extend(page.items);
        prices.extend(page.prices.into_iter().map(|price| (price.id, price)));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let (mut usage, mut cursor) = (Vec::new(), None);
    loop {
        let page: UsagePage = client.get("/api/v1/billing/usage", &query(&cursor)).await?;
        usage.extend(page.items.into_iter().filter_map(|item| match item {
            UsageItem::Record(record) => Some(*record),
            UsageItem::Sum(_) => None,
        }));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let balance = client.get("/api/v1/billing/balance", &[("project_id", project.clone())]).await?;
    Ok(Bill { balance, entries, prices: prices.into_values().collect(), usage })
}

pub fn verify(args: &VerifyArgs, format: Format) -> Result<(), Failure> {
    let bill = read(&args.file)?;
    let report = examine(&bill);
    let rows: Vec<Vec<String>> = vec![vec![
        report.entries.to_string(),
        report.records.to_string(),
        report.series.to_string(),
        report.balance_minor.to_string(),
        report.currency.clone().unwrap_or_default(),
        if report.problems.is_empty() { "holds".to_owned() } else { "does not hold".to_owned() },
    ]];
    output::print(
        format,
        &["entries", "records", "series", "balance_minor", "currency", "bill"],
        &rows,
        &report,
    )?;
    match report.problems.as_slice() {
        [] => Ok(()),
        [only] => Err(Failure::failed(only)),
        [first, more @ ..] => Err(Failure::failed(format!("{first}; and {} more problems", more.len()))),
    }
}

fn read(file: &Path) -> Result<Bill, Failure> {
    let named = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| named(&error))?;
    serde_json::from_str(&text).map_err(|error| named(&error))
}

/// What one month of one thing under one price is known by.
type Series = (UsageSource, String, Option<Uuid>, Option<Uuid>, Uuid, NaiveDate);

fn examine(bill: &Bill) -> Report {
    let mut problems = Vec::new();
    let mut head = Head::default();
    for entry in &bill.entries {
        match head.then(entry) {
            Ok(next) => head = next,
            Err(broken) => {
                problems.push(format!("the chain is broken at {broken}"));
                break;
            }
        }
    }
    let told = &bill.balance;
    if problems.is_empty()
        && (head.seq, &head.hash, head.balance_minor) != (told.entries, &told.head_hash, told.balance_minor)
    {
        problems.push("the balance is not that of the last entry".to_owned());
    }
    let used = used(bill);
    let charged = charged(bill);
    // What came late is counted but not charged yet; its series will be right after the next rollup.
    let moving: BTreeSet<Series> =
        priced(bill).filter(|(record, _)| !record.rated).map(|(_, series)| series).collect();
    for series in used.keys().chain(charged.keys().filter(|series| !used.contains_key(*series))) {
        if moving.contains(series) {
            continue;
        }
        let (_, unit, _, _, price, month) = series;
        let paid = charged.get(series).copied().unwrap_or_default();
        let quantity = used.get(series).copied().unwrap_or_default();
        let rate = bill.prices.iter().find(|one| one.id == *price).map(rate);
        // A price that no entry names never charged anything, so its series must have cost nothing.
        let owed = rate.map_or(0, |rate| rate.cost(quantity));
        if paid != owed {
            problems.push(format!("{quantity} {unit} of {month} cost {owed}, but {paid} was charged"));
        }
    }
    Report {
        entries: bill.entries.len(),
        records: bill.usage.len(),
        series: used.len(),
        balance_minor: head.balance_minor,
        currency: told.currency.clone(),
        problems,
    }
}

fn used(bill: &Bill) -> BTreeMap<Series, i64> {
    let mut used = BTreeMap::new();
    for (record, series) in priced(bill).filter(|(record, _)| record.rated) {
        *used.entry(series).or_default() += record.quantity;
    }
    used
}

/// The records that have a price, each with its series.
fn priced(bill: &Bill) -> impl Iterator<Item = (&UsageRecord, Series)> {
    bill.usage.iter().filter_map(|record| {
        let (unit, month) = (record.usage_unit.clone(), month_of(record.window_start));
        let (instance, allocation) = (record.app_instance_id, record.allocation_id);
        Some((record, (record.usage_source, unit, instance, allocation, record.price_id?, month)))
    })
}

fn charged(bill: &Bill) -> BTreeMap<Series, i64> {
    let mut charged = BTreeMap::new();
    for entry in bill.entries.iter().filter(|entry| entry.kind != EntryKind::Credit) {
        let named =
            entry.usage_source.zip(entry.usage_unit.clone()).zip(entry.price_id.zip(entry.window_start));
        let Some(((source, unit), (price, start))) = named else { continue };
        let series = (source, unit, entry.app_instance_id, entry.allocation_id, price, month_of(start));
        *charged.entry(series).or_default() -= entry.amount_minor;
    }
    charged
}

fn rate(price: &Price) -> Rate {
    let (amount_minor, per) = (price.amount_minor.unwrap_or_default(), price.per.unwrap_or(1));
    match price.model {
        PriceModel::Flat => Rate::Flat { amount_minor },
        PriceModel::PerUnit => Rate::PerUnit { amount_minor, per },
        PriceModel::Tiered => Rate::Tiered { per, tiers: price.tiers.clone().unwrap_or_default() },
    }
}
