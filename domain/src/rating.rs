//! What windows of usage do to the ledger: pure, so that it can be held against any other way of computing it.
//!
//! **What always holds:** the entries of a series add up to the price of what the series has used, whatever came late, was
//! rated again, or in which order. A window that changes takes its charge back to the minor unit and is charged anew.
//! What was rated keeps its price, whatever prices came since, until somebody asks for it to be rated again. What comes to
//! more than can be counted is left as it was, and nothing else for it.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Datelike, NaiveDate, Utc};
use uuid::Uuid;

use crate::ledger::EntryKind;
use crate::metering::{UsageSource, Window};
use crate::price::{Price, Priced, choose};

/// What usage is of: windows of the same are one line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Of {
    pub usage_source: UsageSource,
    pub usage_unit: String,
    pub app_instance_id: Option<Uuid>,
    pub allocation_id: Option<Uuid>,
}

/// Everything that was used of it within a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    pub window: Window,
    pub of: Of,
    pub app_slug: Option<String>,
    pub sku: Option<String>,
    pub quantity: i64,
}

/// What a window was last charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub window: Window,
    pub of: Of,
    pub app_slug: Option<String>,
    pub quantity: i64,
    /// Without a price nothing was charged.
    pub price_id: Option<Uuid>,
    pub amount_minor: i64,
    /// The number of its charge in the ledger, if it made a difference.
    pub entry: Option<i64>,
    /// Whether its price is to be chosen anew.
    pub again: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    pub of: Of,
    pub price_id: Uuid,
    /// Its first day.
    pub month: NaiveDate,
}

/// What a series has used, and what it was charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub quantity: i64,
    pub amount_minor: i64,
}

/// An entry to be written. Its amount is what the project pays; the ledger takes that from the balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    pub kind: EntryKind,
    pub amount_minor: i64,
    pub window: Window,
    pub of: Of,
    pub app_slug: Option<String>,
    pub quantity: i64,
    pub price_id: Uuid,
    pub price_version: i32,
    pub reverses: Option<i64>,
}

/// A line as it is from now on, and where its charge is among the postings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub before: Option<Line>,
    pub line: Line,
    pub charge: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub postings: Vec<Posting>,
    pub changes: Vec<Change>,
    /// What could not be rated, and is as it was.
    pub left: Vec<Left>,
}

/// No series may come to more, in either of its numbers: sums of many of them still fit wherever they are kept.
pub const MOST_OF_A_SERIES: i64 = 1_000_000_000_000_000;

/// What was used within a window, with which its series would come to more than can be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub window: Window,
    pub of: Of,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, month) = (&self.of.usage_unit, month_of(self.window.start));
        write!(f, "{unit} of {month} come to more than {MOST_OF_A_SERIES}")
    }
}

impl Sum {
    /// After so much more, or less, and at what that costs; `None` where it is more than can be kept.
    fn moved(self, quantity: i64, price: &Price) -> Option<Sum> {
        let fits = |number: &i64| *number <= MOST_OF_A_SERIES;
        let quantity = self.quantity.checked_add(quantity).filter(fits)?;
        let amount_minor = Some(price.rate.cost(quantity)).filter(fits)?;
        Some(Sum { quantity, amount_minor })
    }
}

pub fn month_of(moment: DateTime<Utc>) -> NaiveDate {
    moment.date_naive().with_day(1).unwrap_or_else(|| moment.date_naive())
}

/// Rates windows of one project. `sums` are those of every series that the windows were or will be in, and are moved on.
/// Usage only grows, so every line that stands is among what was used.
pub fn rate(used: &[Used], standing: &[Line], prices: &[Price], sums: &mut BTreeMap<Series, Sum>) -> Outcome {
    let mut outcome = Outcome::default();
    // Series that lost a window, with what they lost.
    let mut left: BTreeMap<Series, &Used> = BTreeMap::new();
    let before: BTreeMap<(Window, &Of), &Line> =
        standing.iter().map(|line| ((line.window, &line.of), line)).collect();
    for one in used {
        let line = before.get(&(one.window, &one.of)).copied();
        let price = kept(line, prices).or_else(|| choose(prices, &one.priced()));
        if line
            .is_some_and(|line| line.quantity == one.quantity && line.price_id == price.map(|price| price.id))
        {
            continue;
        }
        if price.is_some_and(|price| !fits(one, line, price, sums)) {
            outcome.left.push(Left { window: one.window, of: one.of.clone() });
            continue;
        }
        if let Some(series) = line.and_then(|line| take_back(line, prices, sums, &mut outcome)) {
            left.insert(series, one);
        }
        let charged = price.and_then(|price| charge(one, price, sums, &mut outcome));
        if let Some((series, _)) = &charged {
            left.remove(series);
        }
        let amount_minor = charged.as_ref().map_or(0, |(_, amount)| *amount);
        outcome.changes.push(Change {
            before: line.cloned(),
            charge: (amount_minor != 0).then(|| outcome.postings.len().saturating_sub(1)),
            line: Line {
                window: one.window,
                of: one.of.clone(),
                app_slug: one.app_slug.clone(),
                quantity: one.quantity,
                price_id: price.map(|price| price.id),
                amount_minor,
                entry: None,
                again: false,
            },
        });
    }
    for (series, lost) in left {
        adjust(&series, lost, prices, sums, &mut outcome);
    }
    outcome
}

/// Whether the series can be kept that a window would be in, without what it was charged there before.
fn fits(used: &Used, line: Option<&Line>, price: &Price, sums: &BTreeMap<Series, Sum>) -> bool {
    let series = Series { of: used.of.clone(), price_id: price.id, month: month_of(used.window.start) };
    let sum = sums.get(&series).copied().unwrap_or_default();
    let before = line.filter(|line| line.price_id == Some(price.id)).map_or(0, |line| line.quantity);
    sum.moved(used.quantity.saturating_sub(before), price).is_some()
}

/// The price that a line has, unless it is to have another.
fn kept<'a>(line: Option<&Line>, prices: &'a [Price]) -> Option<&'a Price> {
    let id = line.filter(|line| !line.again)?.price_id?;
    prices.iter().find(|price| price.id == id)
}

impl Used {
    fn priced(&self) -> Priced<'_> {
        Priced {
            usage_source: self.of.usage_source,
            usage_unit: &self.of.usage_unit,
            app_slug: self.app_slug.as_deref(),
            sku: self.sku.as_deref(),
            at: self.window.start,
        }
    }
}

/// The charge of a line goes back as it came. Answers the series that the window has left.
fn take_back(
    line: &Line,
    prices: &[Price],
    sums: &mut BTreeMap<Series, Sum>,
    outcome: &mut Outcome,
) -> Option<Series> {
    let price = prices.iter().find(|price| Some(price.id) == line.price_id)?;
    let series = Series { of: line.of.clone(), price_id: price.id, month: month_of(line.window.start) };
    let sum = sums.entry(series.clone()).or_default();
    sum.quantity -= line.quantity;
    sum.amount_minor -= line.amount_minor;
    if line.amount_minor != 0 {
        outcome.postings.push(Posting {
            kind: EntryKind::Reversal,
            amount_minor: -line.amount_minor,
            window: line.window,
            of: line.of.clone(),
            app_slug: line.app_slug.clone(),
            quantity: line.quantity,
            price_id: price.id,
            price_version: price.version,
            reverses: line.entry,
        });
    }
    Some(series)
}

/// Charges what makes the series right again.
fn charge(
    used: &Used,
    price: &Price,
    sums: &mut BTreeMap<Series, Sum>,
    outcome: &mut Outcome,
) -> Option<(Series, i64)> {
    let series = Series { of: used.of.clone(), price_id: price.id, month: month_of(used.window.start) };
    let sum = sums.entry(series.clone()).or_default();
    let moved = sum.moved(used.quantity, price)?;
    let amount_minor = moved.amount_minor - sum.amount_minor;
    *sum = moved;
    if amount_minor != 0 {
        outcome.postings.push(Posting {
            kind: EntryKind::Charge,
            amount_minor,
            window: used.window,
            of: used.of.clone(),
            app_slug: used.app_slug.clone(),
            quantity: used.quantity,
            price_id: price.id,
            price_version: price.version,
            reverses: None,
        });
    }
    Some((series, amount_minor))
}

/// What is left of a series may cost more or less than it did as part of the whole. It fits, as the whole did.
fn adjust(
    series: &Series,
    lost: &Used,
    prices: &[Price],
    sums: &mut BTreeMap<Series, Sum>,
    outcome: &mut Outcome,
) {
    let Some(price) = prices.iter().find(|price| price.id == series.price_id) else { return };
    let sum = sums.entry(series.clone()).or_default();
    let Some(moved) = sum.moved(0, price) else { return };
    let amount_minor = moved.amount_minor - sum.amount_minor;
    *sum = moved;
    if amount_minor != 0 {
        outcome.postings.push(Posting {
            kind: EntryKind::Adjustment,
            amount_minor,
            window: lost.window,
            of: series.of.clone(),
            app_slug: lost.app_slug.clone(),
            quantity: 0,
            price_id: price.id,
            price_version: price.version,
            reverses: None,
        });
    }
}

#[cfg(test)]
mod tests;
