//! The ledger: entries that only grow, each sealing the one before it, and for every project the end of its chain with the
//! balance. Whoever posts holds the head, so entries come one after the other.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use domain::UsageSource;
use domain::ledger::{Broken, Entry, EntryKind, Head};
use domain::price::Price;
use domain::rating::{Of, Posting, Series, month_of};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{parsed, prices, usage_windows};

/// The end of a project's chain, and what was told of its balance.
#[derive(Clone, Debug)]
pub struct Kept {
    pub head: Head,
    pub currency: Option<String>,
    pub told_low: bool,
    pub told_spent: Option<NaiveDate>,
}

/// The head, held still until the transaction ends. A project without one gets it.
pub async fn hold(conn: &mut PgConnection, org: Uuid, project: Uuid) -> sqlx::Result<Kept> {
    sqlx::query!(
        "insert into ledger_heads (project_id, org_id) values ($1, $2) on conflict (project_id) do nothing",
        project,
        org
    )
    .execute(&mut *conn)
    .await?;
    let row = sqlx::query!(
        "select seq, hash, balance_minor, currency, told_low, told_spent from ledger_heads where project_id = $1 for update",
        project
    )
    .fetch_one(conn)
    .await?;
    Ok(Kept {
        head: Head { seq: row.seq, hash: row.hash, balance_minor: row.balance_minor },
        currency: row.currency,
        told_low: row.told_low,
        told_spent: row.told_spent,
    })
}

/// The head as it is, for reading; `None` while nothing was posted.
pub async fn find(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Option<(Kept, DateTime<Utc>)>> {
    let row = sqlx::query!(
        "select seq, hash, balance_minor, currency, told_low, told_spent, updated_at from ledger_heads where project_id = $1",
        project
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| {
        let head = Head { seq: row.seq, hash: row.hash, balance_minor: row.balance_minor };
        let (told_low, told_spent) = (row.told_low, row.told_spent);
        (Kept { head, currency: row.currency, told_low, told_spent }, row.updated_at)
    }))
}

pub async fn keep(conn: &mut PgConnection, project: Uuid, kept: &Kept) -> sqlx::Result<()> {
    sqlx::query!(
        "update ledger_heads set seq = $2, hash = $3, balance_minor = $4, currency = $5, told_low = $6, told_spent = $7,
                updated_at = engine.now()
         where project_id = $1",
        project,
        kept.head.seq,
        kept.head.hash,
        kept.head.balance_minor,
        kept.currency,
        kept.told_low,
        kept.told_spent
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Whose entries are written, and on what occasion.
#[derive(Clone, Copy, Debug)]
pub struct Occasion<'a> {
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub currency: &'a str,
    pub correlation_id: &'a str,
    pub at: DateTime<Utc>,
}

impl Occasion<'_> {
    /// The next entry after a head; what a project pays leaves its balance.
    pub fn entry(&self, head: &Head, posting: &Posting) -> Entry {
        self.sealed(
            head,
            Entry {
                kind: posting.kind,
                amount_minor: -posting.amount_minor,
                window_start: Some(posting.window.start),
                window_end: Some(posting.window.end),
                usage_source: Some(posting.of.usage_source),
                usage_unit: Some(posting.of.usage_unit.clone()),
                app_instance_id: posting.of.app_instance_id,
                allocation_id: posting.of.allocation_id,
                quantity: Some(posting.quantity),
                price_id: Some(posting.price_id),
                price_version: Some(posting.price_version),
                reverses: posting.reverses,
                ..self.blank()
            },
        )
    }

    /// Money that came in.
    pub fn credit(&self, head: &Head, amount_minor: i64) -> Entry {
        self.sealed(head, Entry { amount_minor, ..self.blank() })
    }

    fn blank(&self) -> Entry {
        Entry {
            project_id: self.project_id,
            seq: 0,
            kind: EntryKind::Credit,
            amount_minor: 0,
            currency: self.currency.to_owned(),
            window_start: None,
            window_end: None,
            usage_source: None,
            usage_unit: None,
            app_instance_id: None,
            allocation_id: None,
            quantity: None,
            price_id: None,
            price_version: None,
            reverses: None,
            correlation_id: self.correlation_id.to_owned(),
            posted_at: self.at,
            prev_hash: String::new(),
            hash: String::new(),
        }
    }

    fn sealed(&self, head: &Head, entry: Entry) -> Entry {
        let mut entry = Entry { seq: head.seq + 1, prev_hash: head.hash.clone(), ..entry };
        entry.hash = entry.sealed();
        entry
    }
}

/// Writes entries that follow the head.
pub async fn append(conn: &mut PgConnection, org: Uuid, entries: &[Entry]) -> sqlx::Result<()> {
    let ids =
        |field: fn(&Entry) -> Option<Uuid>| -> Vec<Option<Uuid>> { entries.iter().map(field).collect() };
    sqlx::query!(
        "insert into ledger_entries (org_id, project_id, seq, kind, amount_minor, currency, window_start, window_end,
             usage_source, usage_unit, app_instance_id, allocation_id, quantity, price_id, price_version, reverses,
             correlation_id, posted_at, prev_hash, hash)
         select $1, * from unnest($2::uuid[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::timestamptz[],
             $8::timestamptz[], $9::text[], $10::text[], $11::uuid[], $12::uuid[], $13::bigint[], $14::uuid[], $15::integer[],
             $16::bigint[], $17::text[], $18::timestamptz[], $19::text[], $20::text[])",
        org,
        &entries.iter().map(|entry| entry.project_id).collect::<Vec<_>>(),
        &entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(),
        &entries.iter().map(|entry| entry.kind.as_str().to_owned()).collect::<Vec<_>>(),
        &entries.iter().map(|entry| entry.amount_minor).collect::<Vec<_>>(),
        &entries.iter().map(|entry| entry.currency.clone()).collect::<Vec<_>>(),
        &entries.iter().map(|entry| entry.window_start).collect::<Vec<_>>() as &[Option<DateTime<Utc>>],
        &entries.iter().map(|entry| entry.window_end).collect::<Vec<_>>() as &[Option<DateTime<Utc>>],
        &entries.iter().map(|entry| entry.usage_source.map(|source| source.to_string())).collect::<Vec<_>>()
            as &[Option<String>],
        &entries.iter().map(|entry| entry.usage_unit.clone()).collect::<Vec<_>>() as &[Option<String>],
        &ids(|entry| entry.app_instance_id) as &[Option<Uuid>],
        &ids(|entry| entry.allocation_id) as &[Option<Uuid>],
        &entries.iter().map(|entry| entry.quantity).collect::<Vec<_>>() as &[Option<i64>],
        &ids(|entry| entry.price_id) as &[Option<Uuid>],
        &entries.iter().map(|entry| entry.price_version).collect::<Vec<_>>() as &[Option<i32>],
        &entries.iter().map(|entry| entry.reverses).collect::<Vec<_>>() as &[Option<i64>],
        &entries.iter().map(|entry| entry.correlation_id.clone()).collect::<Vec<_>>(),
        &entries.iter().map(|entry| entry.posted_at).collect::<Vec<_>>(),
        &entries.iter().map(|entry| entry.prev_hash.clone()).collect::<Vec<_>>(),
        &entries.iter().map(|entry| entry.hash.clone()).collect::<Vec<_>>()
    )
    .execute(conn)
    .await?;
    Ok(())
}

struct Row {
    project_id: Uuid,
    seq: i64,
    kind: String,
    amount_minor: i64,
    currency: String,
    window_start: Option<DateTime<Utc>>,
    window_end: Option<DateTime<Utc>>,
    usage_source: Option<String>,
    usage_unit: Option<String>,
    app_instance_id: Option<Uuid>,
    allocation_id: Option<Uuid>,
    quantity: Option<i64>,
    price_id: Option<Uuid>,
    price_version: Option<i32>,
    reverses: Option<i64>,
    correlation_id: String,
    posted_at: DateTime<Utc>,
    prev_hash: String,
    hash: String,
}

impl Row {
    fn entry(self) -> sqlx::Result<Entry> {
        Ok(Entry {
            project_id: self.project_id,
            seq: self.seq,
            kind: parsed::<EntryKind>(&self.kind)?,
            amount_minor: self.amount_minor,
            currency: self.currency,
            window_start: self.window_start,
            window_end: self.window_end,
            usage_source: self.usage_source.as_deref().map(parsed::<UsageSource>).transpose()?,
            usage_unit: self.usage_unit,
            app_instance_id: self.app_instance_id,
            allocation_id: self.allocation_id,
            quantity: self.quantity,
            price_id: self.price_id,
            price_version: self.price_version,
            reverses: self.reverses,
            correlation_id: self.correlation_id,
            posted_at: self.posted_at,
            prev_hash: self.prev_hash,
            hash: self.hash,
        })
    }
}

/// Entries of a project after a number, in their order.
pub async fn list(
    conn: &mut PgConnection,
    project: Uuid,
    after: i64,
    limit: i64,
) -> sqlx::Result<Vec<Entry>> {
    let rows = sqlx::query_as!(
        Row,
        "select project_id, seq, kind, amount_minor, currency, window_start, window_end, usage_source, usage_unit,
                app_instance_id, allocation_id, quantity, price_id, price_version, reverses, correlation_id, posted_at,
                prev_hash, hash
         from ledger_entries where project_id = $1 and seq > $2 order by seq limit $3",
        project,
        after,
        limit
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Row::entry).collect()
}

/// A batch of projects that have a ledger, with ids above `after`.
pub async fn projects(conn: &mut PgConnection, after: Option<Uuid>, limit: i64) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "select project_id from ledger_heads where $1::uuid is null or project_id > $1 order by project_id limit $2",
        after,
        limit
    )
    .fetch_all(conn)
    .await
}

/// What is wrong with a ledger, if anything is.
#[derive(Debug, thiserror::Error)]
pub enum Unproven {
    #[error("project {0}: the chain is broken: {1}")]
    Chain(Uuid, Broken),
    #[error("project {0}: {1}")]
    Flaw(Uuid, Broken),
    #[error("project {0}: the kept end of the chain is not where the entries end")]
    Head(Uuid),
    #[error("project {0}: {1} series were charged something else than they cost")]
    Series(Uuid, usize),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Reads the whole chain, of which every entry must say what it is for, and holds it against the kept balance, and every
/// series against what it was charged, all in pieces of bounded size: however long a ledger is, no statement is. On a
/// connection that sees one moment.
pub async fn prove(conn: &mut PgConnection, project: Uuid) -> Result<Head, Unproven> {
    const PIECE: i64 = 1000;
    let (mut head, mut charged) = (Head::default(), BTreeMap::new());
    loop {
        let entries = list(conn, project, head.seq, PIECE).await?;
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            head = head.then(&entry).map_err(|broken| Unproven::Chain(project, broken))?;
            if let Some(why) = entry.flaw() {
                return Err(Unproven::Flaw(project, Broken { seq: entry.seq, why }));
            }
            add(&mut charged, entry);
        }
    }
    let kept = find(conn, project).await?.map(|(kept, _)| kept.head).unwrap_or_default();
    if kept != head {
        return Err(Unproven::Head(project));
    }
    let (used, prices) = (usage_windows::by_series(conn, project).await?, prices::all(conn).await?);
    match wrong_series(&charged, &used, &prices) {
        0 => Ok(head),
        wrong => Err(Unproven::Series(project, wrong)),
    }
}

/// What an entry adds to the charge of its series; credits, which alone may name none, are of none.
fn add(charged: &mut BTreeMap<Series, i128>, entry: Entry) {
    let window = entry.window_start.zip(entry.usage_source).zip(entry.usage_unit).zip(entry.price_id);
    let Some((((start, usage_source), usage_unit), price_id)) = window else { return };
    let (app_instance_id, allocation_id) = (entry.app_instance_id, entry.allocation_id);
    let of = Of { usage_source, usage_unit, app_instance_id, allocation_id };
    let series = Series { of, price_id, month: month_of(start) };
    *charged.entry(series).or_default() -= i128::from(entry.amount_minor);
}

/// How many series are not worth what the ledger charged for them.
fn wrong_series(charged: &BTreeMap<Series, i128>, used: &BTreeMap<Series, i64>, prices: &[Price]) -> usize {
    let is_wrong = |series: &Series| {
        let amount = charged.get(series).copied().unwrap_or_default();
        let quantity = used.get(series).copied().unwrap_or_default();
        let price = prices.iter().find(|price| price.id == series.price_id);
        price.is_none_or(|price| i128::from(price.rate.cost(quantity)) != amount)
    };
    let unused = charged.keys().filter(|series| !used.contains_key(series));
    used.keys().chain(unused).filter(|series| is_wrong(series)).count()
}
