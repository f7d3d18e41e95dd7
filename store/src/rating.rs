//! One transaction of rating: takes windows that are over, rates them and posts what that changes to the ledgers of their
//! projects, each by itself. What cannot be counted keeps its window open, and nothing else of its project waiting. Doing it
//! again finds nothing to do; a crash in between leaves everything as it was.

use std::collections::BTreeSet;

use domain::event::NewEvent;
use domain::ledger::{Broken, Entry, EntryKind};
use domain::price::Price;
use domain::rating::{self, Left, Line, Outcome, Posting, Used};
use domain::{EventType, PolicyKey, Window};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{Executor as _, PgConnection};
use tracing::error;
use uuid::Uuid;

use crate::billing_ledger::{self, Kept, Occasion};
use crate::open_windows::OpenWindow;
use crate::policies::{self, Subject};
use crate::usage_windows::{self, Owner};
use crate::{open_windows, outbox, prices, rated_series, server, spent_budgets, unrated_projects};

/// What one transaction, or all of them, came to.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Posted {
    pub windows: usize,
    pub entries: usize,
    /// How often a project, or a part of what it used, could not be rated and was set aside.
    #[serde(default)]
    pub set_aside: usize,
}

impl Posted {
    /// Whether there was nothing to do.
    pub fn is_nothing(self) -> bool {
        self.windows + self.set_aside == 0
    }
}

impl std::ops::AddAssign for Posted {
    fn add_assign(&mut self, more: Posted) {
        self.windows += more.windows;
        self.entries += more.entries;
        self.set_aside += more.set_aside;
    }
}

/// Why a project could not be rated.
#[derive(Debug, thiserror::Error)]
enum Unrated {
    #[error("the ledger cannot go on: {0}")]
    Broken(#[from] Broken),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

impl Unrated {
    /// What is nobody's own: the database is away, the transaction cannot go on, or it met another on the way. That is
    /// tried again, by all of it.
    fn of_everybody(self) -> Result<Unrated, sqlx::Error> {
        match self {
            Unrated::Database(error) if met_another(&error) => Err(error),
            Unrated::Database(error @ (sqlx::Error::Database(_) | sqlx::Error::Decode(_))) => {
                Ok(Unrated::Database(error))
            }
            Unrated::Database(error) => Err(error),
            own => Ok(own),
        }
    }
}

/// Two waited for each other, or one for too long: says nothing of what was to be rated.
fn met_another(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    matches!(code.as_deref(), Some("40P01" | "55P03"))
}

/// Rates at most so many windows, and no more than fit into memory. None are left when it answers that there were none.
/// A project that cannot be rated is set aside, with its windows as they were, and keeps nobody else from it.
pub async fn post(conn: &mut PgConnection, limit: i64, correlation_id: &str) -> sqlx::Result<Posted> {
    let windows = open_windows::due(conn, limit).await?;
    if windows.is_empty() {
        return Ok(Posted::default());
    }
    // Nobody makes a price meanwhile: whatever was made before an entry was posted was known to whoever posted it.
    prices::hold(conn).await?;
    let book =
        Book { prices: prices::all(conn).await?, currency: prices::currency(conn).await?, correlation_id };
    let mut posted = Posted::default();
    for windows in windows.chunk_by(|one, next| one.project_id == next.project_id) {
        let Some(project) = windows.first().map(|open| open.project_id) else { continue };
        conn.execute("savepoint of_project").await?;
        match book.rate(conn, windows).await.map_err(Unrated::of_everybody) {
            Ok(of_project) => posted += of_project,
            Err(Err(error)) => return Err(error),
            Err(Ok(why)) => {
                conn.execute("rollback to savepoint of_project").await?;
                let tries = unrated_projects::set_aside(conn, project, &why.to_string()).await?;
                error!(%project, tries, %why, "the usage of a project could not be rated");
                posted.set_aside += 1;
            }
        }
        conn.execute("release savepoint of_project").await?;
    }
    Ok(posted)
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

/// Windows of which something was left are tried again later. As long as a project has one, that is told.
async fn tell_left(
    conn: &mut PgConnection,
    project: Uuid,
    waiting: &[OpenWindow],
    left: &[Left],
) -> sqlx::Result<()> {
    let Some(first) = left.first() else { return unrated_projects::clear(conn, project).await };
    open_windows::put_off(conn, waiting).await?;
    let tries = unrated_projects::note(conn, project, &first.to_string()).await?;
    error!(%project, tries, why = %first, left = left.len(), "a part of a project's usage could not be rated");
    Ok(())
}

/// What is the same for every project.
struct Book<'a> {
    prices: Vec<Price>,
    currency: Option<String>,
    correlation_id: &'a str,
}

impl Book<'_> {
    /// The windows of one project. What cannot be counted yet keeps its window open.
    async fn rate(&self, conn: &mut PgConnection, windows: &[OpenWindow]) -> Result<Posted, Unrated> {
        let used = usage_windows::used(conn, windows).await?;
        let standing = usage_windows::standing(conn, windows).await?;
        let (mut entries, mut left) = (0, Vec::new());
        // A project belongs to one organization, but what it used was written under the one it had then.
        for of_owner in used.chunk_by(|(one, _), (next, _)| one == next) {
            let Some((owner, _)) = of_owner.first() else { continue };
            let used: Vec<Used> = of_owner.iter().map(|(_, used)| used.clone()).collect();
            let (more, uncounted) = self.post(conn, *owner, &used, &standing).await?;
            entries += more;
            left.extend(uncounted);
        }
        usage_windows::rated_again(conn, windows, &left).await?;
        let unrated: BTreeSet<Window> = left.iter().map(|left| left.window).collect();
        let (waiting, done): (Vec<OpenWindow>, Vec<OpenWindow>) =
            windows.iter().copied().partition(|open| unrated.contains(&open.window));
        open_windows::take(conn, &done).await?;
        if let Some(open) = windows.first() {
            tell_left(conn, open.project_id, &waiting, &left).await?;
        }
        Ok(Posted { windows: done.len(), entries, set_aside: usize::from(!left.is_empty()) })
    }

    /// Answers how many entries there are more, and what was left as it was.
    async fn post(
        &self,
        conn: &mut PgConnection,
        owner: Owner,
        used: &[Used],
        standing: &[Line],
    ) -> Result<(usize, Vec<Left>), Unrated> {
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
        Ok((entries.len(), outcome.left))
    }

    async fn entries(
        &self,
        conn: &mut PgConnection,
        owner: Owner,
        outcome: &Outcome,
        kept: &mut Kept,
    ) -> Result<Vec<Entry>, Unrated> {
        let Some(currency) = &self.currency else { return Ok(Vec::new()) };
        let Owner { org_id, project_id } = owner;
        let at = server::now(conn).await?;
        let occasion = Occasion { org_id, project_id, currency, correlation_id: self.correlation_id, at };
        let mut entries = Vec::with_capacity(outcome.postings.len());
        for posting in &outcome.postings {
            let entry = occasion.entry(&kept.head, posting);
            kept.head = kept.head.then(&entry)?;
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
        let amount = entries.iter().fold(0_i64, |sum, entry| sum.saturating_add(entry.amount_minor));
        let posted = json!({
            "project_id": project_id, "entries": entries.len(), "first_seq": entries.first().map(|entry| entry.seq),
            "last_seq": kept.head.seq, "head_hash": kept.head.hash, "amount_minor": amount, "balance_minor": balance,
            "currency": self.currency,
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
        if let Some(spent) = spent_budgets::news(conn, project_id, kept).await? {
            events.push((EventType::BudgetExceeded, spent));
        }
        for (kind, data) in events {
            let owner = (org_id, project_id);
            let event = NewEvent::of_project(owner, kind, project_id, &data, self.correlation_id);
            outbox::insert(conn, &event).await?;
        }
        Ok(())
    }
}
