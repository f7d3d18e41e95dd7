//! Whether what a bill lists may be counted at all. Everything else that is checked takes a bill's lists at their word, so
//! whatever is no entry, no record or no price of this project is told here, however well the sums come out.

use std::collections::BTreeSet;

use api_types::{Bill, UsageRecord};
use domain::metering;
use uuid::Uuid;

/// Every entry says what it is for.
pub fn entries(bill: &Bill, problems: &mut Vec<String>) {
    for entry in &bill.entries {
        if let Some(flaw) = entry.flaw() {
            problems.push(format!("entry {} counts for nothing: {flaw}", entry.seq));
        }
    }
}

/// Every record is one report, told once, of something that this project used within the window that it is charged in.
pub fn records(bill: &Bill, problems: &mut Vec<String>) {
    let (mut ids, mut reports) = (BTreeSet::new(), BTreeSet::new());
    for record in &bill.usage {
        let mut refuse = |why: &str| problems.push(format!("usage record {} {why}", record.id));
        if !ids.insert(record.id) {
            refuse("is listed twice");
        }
        match record.source.as_ref().zip(record.event_id.as_ref()) {
            Some(report) if reports.insert(report) => {}
            Some((source, event)) => refuse(&format!("counts event {event} of {source} again")),
            None => refuse("does not say which event it is, so it may be counted again"),
        }
        if let Some(why) = misplaced(record, bill.balance.project_id) {
            refuse(why);
        }
    }
}

fn misplaced(record: &UsageRecord, project: Uuid) -> Option<&'static str> {
    if record.project_id != project {
        return Some("is of another project");
    }
    if record.occurred_at < record.window_start || record.occurred_at >= record.window_end {
        return Some("is not of the window that it is counted in");
    }
    let is_countable = (1..=metering::MOST).contains(&record.quantity);
    (!is_countable).then_some("has a quantity that nobody can have told")
}

/// No two prices go by the same name: which of them was charged could not be said.
pub fn prices(bill: &Bill, problems: &mut Vec<String>) {
    let mut ids = BTreeSet::new();
    for price in &bill.prices {
        if !ids.insert(price.id) {
            problems.push(format!("price {} is listed twice", price.id));
        }
    }
}
