//! One transaction of rating: takes windows that are over, rates them and posts what that changes to the ledgers of their
//! projects. Doing it again finds nothing to do; a crash in between leaves everything as it was.

use std::collections::HashMap;

use domain::event::NewEvent;
use domain::ledger::{Entry, EntryKind};
use domain::price::Price;
use domain::rating::{self, Line, Outcome, Posting, Used};
use domain::{EventType, PolicyKey};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::billing_ledger::{self, Kept, Occasion};
use crate::policies::{self, Subject};
use crate::usage_windows::{self, Owner};
use crate::{budgets, open_windows, outbox, prices, rated_series, server};

/// What one transaction, or all of them, came to.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Posted {
    pub windows: usize,
    pub entries: usize,
}

/// Rates at most so many windows, and no more than fit into memory. None are left when it answers that there were none.
pub async fn post(conn: &mut PgConnection, limit: i64, correlation_id: &str) -> sqlx::Result<Posted> {
    let windows = open_windows::take(conn, limit).await?;
    if windows.is_empty() {
        return Ok(Posted::default());
    }
    let used = usage_windows::used(conn, &windows).await?;
    let mut standing: HashMap<Uuid, Vec<Line>> = HashMap::new();
    for (project, line) in usage_windows::standing(conn, &windows).await? {
        standing.entry(project).or_default().push(line);
    }
    // Nobody makes a price meanwhile: whatever was made before an entry was posted was known to whoever posted it.
    prices::hold(conn).await?;
    let book =
        Book { prices: prices::all(conn).await?, currency: prices::currency(conn).await?, correlation_id };
    let mut entries = 0;
    for of_project in used.chunk_by(|(one, _), (next, _)| one == next) {
        let Some((owner, _)) = of_project.first() else { continue };
        let used: Vec<Used> = of_project.iter().map(|(_, used)| used.clone()).collect();
        let lines = standing.remove(&owner.project_id).unwrap_or_default();
        entries += book.post(conn, *owner, &used, &lines).await?;
    }
    usage_windows::rated_again(conn, &windows).await?;
    Ok(Posted { windows: windows.len(), entries })
}

/// Posts money that came in, and tells it like every other entry.
pub async fn credit(
    conn: &mut PgConnection,
    (org_id, project_id): (Uuid, Uuid),
    amount_minor: i64,
    currency: &str,
    correlation_id: &str,
) -> sqlx::Result<Entry> {
    let book = Book { prices: Vec::new(), currency: Some(currency.to_owned()), correlation_id };
    let mut kept = billing_ledger::hold(conn, org_id, project_id).await?;
    let at = server::now(conn).await?;
    let occasion = Occasion { org_id, project_id, currency, correlation_id, at };
    let entry = occasion.credit(&kept.head, amount_minor);
    kept.head = kept.head.then(&entry).map_err(|broken| sqlx::Error::Decode(Box::new(broken)))?;
    kept.currency = Some(currency.to_owned());
    billing_ledger::append(conn, org_id, std::slice::from_ref(&entry)).await?;
    book.tell(conn, Owner { org_id, project_id }, std::slice::from_ref(&entry), &mut kept).await?;
    billing_ledger::keep(conn, project_id, &kept).await?;
    Ok(entry)
}

/// What is the same for every project.
struct Book<'a> {
    prices: Vec<Price>,
    currency: Option<String>,
    correlation_id: &'a str,
}

impl Book<'_> {
    /// Answers how many entries there are more.
    async fn post(
        &self,
        conn: &mut PgConnection,
        owner: Owner,
        used: &[Used],
        standing: &[Line],
    ) -> sqlx::Result<usize> {
        let project = owner.project_id;
        let mut kept = billing_ledger::hold(conn, owner.org_id, project).await?;
        let months: Vec<_> = used.iter().map(|one| rating::month_of(one.window.start)).collect();
        let subjects: Vec<Uuid> =
            used.iter().filter_map(|one| one.of.app_instance_id.or(one.of.allocation_id)).collect();
        let mut sums = rated_series::of(conn, project, &months, &subjects).await?;
        let outcome = rating::rate(used, standing, &self.prices, &mut sums);
        let entries = self.entries(conn, owner, &outcome, &mut kept).await?;
        let lines: Vec<Line> = outcome
            .changes
            .iter()
            .map(|change| {
                let entry = change.charge.and_then(|place| entries.get(place)).map(|entry| entry.seq);
                Line { entry, ..change.line.clone() }
            })
            .collect();
        let adjustments: Vec<&Posting> =
            outcome.postings.iter().filter(|posting| posting.kind == EntryKind::Adjustment).collect();
        billing_ledger::append(conn, owner.org_id, &entries).await?;
        usage_windows::keep(conn, owner, &lines).await?;
        usage_windows::add_to_hours(conn, project, &outcome.changes, &adjustments).await?;
        rated_series::keep(conn, project, &sums).await?;
        if !entries.is_empty() {
            self.tell(conn, owner, &entries, &mut kept).await?;
            billing_ledger::keep(conn, project, &kept).await?;
        }
        Ok(entries.len())
    }

    async fn entries(
        &self,
        conn: &mut PgConnection,
        owner: Owner,
        outcome: &Outcome,
        kept: &mut Kept,
    ) -> sqlx::Result<Vec<Entry>> {
        let Some(currency) = &self.currency else { return Ok(Vec::new()) };
        let Owner { org_id, project_id } = owner;
        let at = server::now(conn).await?;
        let occasion = Occasion { org_id, project_id, currency, correlation_id: self.correlation_id, at };
        let mut entries = Vec::with_capacity(outcome.postings.len());
        for posting in &outcome.postings {
            let entry = occasion.entry(&kept.head, posting);
            kept.head = kept.head.then(&entry).map_err(|broken| sqlx::Error::Decode(Box::new(broken)))?;
            entries.push(entry);
        }
        kept.currency = Some(currency.clone());
        Ok(entries)
    }

    /// That entries came, and what they mean for the balance and the budget: each told once, when it becomes true.
    async fn tell(
        &self,
        conn: &mut PgConnection,
        owner: Owner,
        entries: &[Entry],
        kept: &mut Kept,
    ) -> sqlx::Result<()> {
        let Owner { org_id, project_id } = owner;
        let balance = kept.head.balance_minor;
        let amount: i64 = entries.iter().map(|entry| entry.amount_minor).sum();
        let posted = json!({
            "project_id": project_id, "entries": entries.len(), "first_seq": entries.first().map(|entry| entry.seq),
            "last_seq": kept.head.seq, "amount_minor": amount, "balance_minor": balance, "currency": self.currency,
        });
        let mut events = vec![(EventType::LedgerPosted, posted)];
        let subject = Subject { user: None, project: Some(project_id), org: Some(org_id) };
        let threshold = policies::whole_number(conn, PolicyKey::LowBalanceThresholdMinor, subject).await?;
        let is_low = balance < threshold;
        if is_low && !kept.told_low {
            let low = json!({
                "project_id": project_id, "balance_minor": balance, "threshold_minor": threshold,
                "currency": self.currency,
            });
            events.push((EventType::LowBalance, low));
        }
        kept.told_low = is_low;
        let standing = budgets::standing(conn, project_id).await?;
        if let Some(budget) = standing.budget.as_ref().filter(|_| standing.is_exceeded()) {
            if kept.told_spent != Some(standing.month) {
                let spent = json!({
                    "project_id": project_id, "month": standing.month, "spent_minor": standing.spent_minor,
                    "budget_minor": budget.amount_minor, "action": budget.action, "mode": budget.mode,
                    "currency": self.currency,
                });
                events.push((EventType::BudgetExceeded, spent));
            }
            kept.told_spent = Some(standing.month);
        } else {
            kept.told_spent = None;
        }
        for (kind, data) in events {
            let owner = (org_id, project_id);
            let event = NewEvent::of_project(owner, kind, project_id, &data, self.correlation_id);
            outbox::insert(conn, &event).await?;
        }
        Ok(())
    }
}
