//! Whether a bill holds: the chain is unbroken, the balance is its sum, every entry but those of money that came in follows
//! from the usage that is listed, every record is counted once, and every price is one that was in force when it was chosen.
//!
//! Nothing that a record says of itself is believed: what it claims to have been rated for must be what the ledger charged,
//! and what claims not to be rated yet must be in a window that the balance does not cover. Whatever is left out of the
//! check is told.

use std::collections::BTreeMap;

use api_types::{Bill, Price, PriceModel, UsageRecord};
use chrono::{DateTime, Utc};
use domain::Window;
use domain::ledger::{Entry, EntryKind, Head};
use domain::price::{Known, Price as Version, Priced, Rate, can_be_chosen};
use domain::rating::{Of, Series, month_of};
use serde::Serialize;

use super::admit;

/// What was found to hold, and what was not looked at.
#[derive(Debug, Serialize)]
pub struct Report {
    pub as_of: DateTime<Utc>,
    pub entries: usize,
    pub records: usize,
    pub series: usize,
    pub balance_minor: i64,
    /// The money that came in. Nothing in the bill can prove it: only whoever paid knows.
    pub credits_minor: i64,
    pub currency: Option<String>,
    /// Unit to quantity that the ledger does not have yet.
    pub pending: BTreeMap<String, i64>,
    /// Unit to quantity for which there was no price.
    pub unpriced: BTreeMap<String, i64>,
    pub problems: Vec<String>,
}

pub fn examine(bill: &Bill) -> Report {
    let mut problems = Vec::new();
    let head = chain(bill, &mut problems);
    admit::entries(bill, &mut problems);
    admit::records(bill, &mut problems);
    admit::prices(bill, &mut problems);
    let mut examiner = Examiner {
        bill,
        known: bill.prices.iter().map(known).collect(),
        standing: standing(&bill.entries, &mut problems),
        used: BTreeMap::new(),
        pending: BTreeMap::new(),
        unpriced: BTreeMap::new(),
        problems,
    };
    for ((window, of), records) in lines(&bill.usage) {
        if let Err(problem) = examiner.line(window, &of, &records) {
            let (unit, start) = (&of.usage_unit, window.start.format("%Y-%m-%dT%H:%M:%SZ"));
            examiner.problems.push(format!("{unit} of {start}: {problem}"));
        }
    }
    for entry in examiner.standing.values() {
        examiner.problems.push(format!("entry {} charges for usage that is not listed", entry.seq));
    }
    examiner.compare();
    Report {
        as_of: bill.as_of,
        entries: bill.entries.len(),
        records: bill.usage.len(),
        series: examiner.used.len(),
        balance_minor: head.balance_minor,
        credits_minor: credits(&bill.entries),
        currency: bill.balance.currency.clone(),
        pending: examiner.pending,
        unpriced: examiner.unpriced,
        problems: examiner.problems,
    }
}

/// The end of the chain, which the balance must be that of.
fn chain(bill: &Bill, problems: &mut Vec<String>) -> Head {
    let mut head = Head::default();
    for entry in &bill.entries {
        match head.then(entry) {
            Ok(next) => head = next,
            Err(broken) => {
                problems.push(format!("the chain is broken at {broken}"));
                return head;
            }
        }
        if entry.project_id != bill.balance.project_id
            || Some(&entry.currency) != bill.balance.currency.as_ref()
        {
            problems.push(format!("entry {} is of another project or currency", entry.seq));
        }
    }
    let told = &bill.balance;
    if (head.seq, &head.hash, head.balance_minor) != (told.entries, &told.head_hash, told.balance_minor) {
        problems.push("the balance is not that of the last entry".to_owned());
    }
    head
}

/// What one thing used within one window: the smallest that is charged.
type Line = (Window, Of);

fn lines(records: &[UsageRecord]) -> BTreeMap<Line, Vec<&UsageRecord>> {
    let mut lines: BTreeMap<Line, Vec<&UsageRecord>> = BTreeMap::new();
    for record in records {
        let of = Of {
            usage_source: record.usage_source,
            usage_unit: record.usage_unit.clone(),
            app_instance_id: record.app_instance_id,
            allocation_id: record.allocation_id,
        };
        let window = Window { start: record.window_start, end: record.window_end };
        lines.entry((window, of)).or_default().push(record);
    }
    lines
}

fn credits(entries: &[Entry]) -> i64 {
    let credits = entries.iter().filter(|entry| entry.kind == EntryKind::Credit);
    credits.fold(0, |sum: i64, credit| sum.saturating_add(credit.amount_minor))
}

/// The charges that nothing has taken back, by what they are for.
fn standing<'a>(entries: &'a [Entry], problems: &mut Vec<String>) -> BTreeMap<Line, &'a Entry> {
    let mut standing: BTreeMap<Line, &Entry> = BTreeMap::new();
    for entry in entries {
        let Some(line) = line_of(entry) else { continue };
        let is_sound = match entry.kind {
            EntryKind::Charge => standing.insert(line, entry).is_none(),
            EntryKind::Reversal => standing.remove(&line).is_some_and(|charge| {
                entry.reverses == Some(charge.seq) && entry.amount_minor == -charge.amount_minor
            }),
            EntryKind::Adjustment | EntryKind::Credit => true,
        };
        if !is_sound {
            problems.push(format!("entry {} charges twice, or takes back what was not charged", entry.seq));
        }
    }
    standing
}

fn line_of(entry: &Entry) -> Option<Line> {
    let window = Window { start: entry.window_start?, end: entry.window_end? };
    let of = Of {
        usage_source: entry.usage_source?,
        usage_unit: entry.usage_unit.clone()?,
        app_instance_id: entry.app_instance_id,
        allocation_id: entry.allocation_id,
    };
    Some((window, of))
}

struct Examiner<'a> {
    bill: &'a Bill,
    known: Vec<Known>,
    /// Charges whose usage was not seen yet.
    standing: BTreeMap<Line, &'a Entry>,
    /// What every series was rated for.
    used: BTreeMap<Series, i64>,
    pending: BTreeMap<String, i64>,
    unpriced: BTreeMap<String, i64>,
    problems: Vec<String>,
}

impl Examiner<'_> {
    /// Holds what the records of a line say against the ledger and the prices, and counts them.
    fn line(&mut self, window: Window, of: &Of, records: &[&UsageRecord]) -> Result<(), String> {
        let charge = self.standing.remove(&(window, of.clone()));
        let Some(first) = records.first() else { return Ok(()) };
        let claim = |record: &UsageRecord| (record.rated, record.price_id, record.rated_quantity);
        if records.iter().any(|record| claim(record) != claim(first)) {
            return Err("its records contradict each other".to_owned());
        }
        let told: i64 = records.iter().map(|record| record.quantity).sum();
        let counted = first.rated_quantity.unwrap_or_default();
        let is_open = !first.rated && window.start >= self.bill.balance.rated_until;
        if counted > told || (counted < told && !is_open) {
            return Err(format!("{told} are listed, but {counted} were rated"));
        }
        if first.rated != first.price_id.is_some() && !is_open {
            return Err("its price does not go with whether it was rated".to_owned());
        }
        if let Some(charge) = charge
            && (charge.price_id, charge.quantity) != (first.price_id, Some(counted))
        {
            return Err(format!("entry {} charges for something else", charge.seq));
        }
        if first.rated_quantity.is_some() {
            let posted = charge.map_or(self.bill.as_of, |charge| charge.posted_at);
            self.priced(window, records, first, posted)?;
        }
        let unit = || of.usage_unit.clone();
        match first.price_id {
            Some(price_id) => {
                let series = Series { of: of.clone(), price_id, month: month_of(window.start) };
                *self.used.entry(series).or_default() += counted;
            }
            None if counted > 0 => *self.unpriced.entry(unit()).or_default() += counted,
            None => {}
        }
        if told > counted {
            *self.pending.entry(unit()).or_default() += told - counted;
        }
        Ok(())
    }

    /// A window is rated once it is over and something was told of it; from then until it is charged, its price is chosen.
    fn priced(
        &self,
        window: Window,
        records: &[&UsageRecord],
        first: &UsageRecord,
        until: DateTime<Utc>,
    ) -> Result<(), String> {
        let told = records.iter().map(|record| record.recorded_at).min();
        let from = told.map_or(window.end, |told| told.max(window.end));
        let priced = Priced {
            usage_source: first.usage_source,
            usage_unit: &first.usage_unit,
            app_slug: first.app_slug.as_deref(),
            sku: first.sku.as_deref(),
            at: window.start,
        };
        if can_be_chosen(&self.known, &priced, first.price_id, (from, until)) {
            return Ok(());
        }
        Err(match first.price_id {
            Some(price) => format!("price {price} was not in force"),
            None => "it has a price, but was not charged".to_owned(),
        })
    }

    /// Every series costs what it was charged.
    fn compare(&mut self) {
        let charged = charged(&self.bill.entries);
        let all = self.used.keys().chain(charged.keys().filter(|series| !self.used.contains_key(*series)));
        for series in all {
            let paid = charged.get(series).copied().unwrap_or_default();
            let quantity = self.used.get(series).copied().unwrap_or_default();
            let price = self.known.iter().find(|one| one.price.id == series.price_id);
            let owed = price.map(|one| one.price.rate.cost(quantity));
            if owed != Some(paid) {
                let (unit, month) = (&series.of.usage_unit, series.month);
                let owed = owed.map_or_else(|| "have no price".to_owned(), |owed| format!("cost {owed}"));
                self.problems.push(format!("{quantity} {unit} of {month} {owed}, but {paid} was charged"));
            }
        }
    }
}

fn charged(entries: &[Entry]) -> BTreeMap<Series, i64> {
    let mut charged = BTreeMap::new();
    for entry in entries {
        let Some(((window, of), price_id)) = line_of(entry).zip(entry.price_id) else { continue };
        let series = Series { of, price_id, month: month_of(window.start) };
        *charged.entry(series).or_default() -= entry.amount_minor;
    }
    charged
}

fn known(price: &Price) -> Known {
    let (amount_minor, per) = (price.amount_minor.unwrap_or_default(), price.per.unwrap_or(1));
    let version = Version {
        id: price.id,
        version: price.version,
        usage_source: price.usage_source,
        usage_unit: price.usage_unit.clone(),
        app_slug: price.app_slug.clone(),
        sku: price.sku.clone(),
        rate: match price.model {
            PriceModel::Flat => Rate::Flat { amount_minor },
            PriceModel::PerUnit => Rate::PerUnit { amount_minor, per },
            PriceModel::Tiered => Rate::Tiered { per, tiers: price.tiers.clone().unwrap_or_default() },
        },
        effective_from: price.effective_from,
    };
    Known { price: version, since: price.created_at }
}
