//! Prices: versions that never change. The newest that has begun holds; which one that is, is decided in `domain`.

use chrono::{DateTime, Utc};
use domain::UsageSource;
use domain::price::{Covers, Price, Rate};
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use crate::{Slice, parsed};

/// A price, and how it came to be.
#[derive(Clone, Debug)]
pub struct PriceRow {
    pub price: Price,
    pub currency: String,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
}

struct Row {
    id: Uuid,
    version: i32,
    usage_source: String,
    usage_unit: String,
    app_slug: Option<String>,
    sku: Option<String>,
    rate: Json<Rate>,
    currency: String,
    effective_from: DateTime<Utc>,
    created_by: Uuid,
    created_at: DateTime<Utc>,
}

impl Row {
    fn price(self) -> sqlx::Result<PriceRow> {
        let price = Price {
            id: self.id,
            version: self.version,
            usage_source: parsed::<UsageSource>(&self.usage_source)?,
            usage_unit: self.usage_unit,
            app_slug: self.app_slug,
            sku: self.sku,
            rate: self.rate.0,
            effective_from: self.effective_from,
        };
        Ok(PriceRow {
            price,
            currency: self.currency,
            created_by: self.created_by,
            created_at: self.created_at,
        })
    }
}

/// Gives the price the next version of those for the same thing, and answers it. One price is made at a time.
pub async fn insert(
    conn: &mut PgConnection,
    new: &Price,
    currency: &str,
    by: Uuid,
) -> sqlx::Result<PriceRow> {
    let row = sqlx::query_as!(
        Row,
        r#"insert into prices (id, version, usage_source, usage_unit, app_slug, sku, covers, rate, currency, effective_from,
                               created_by)
           select $1, 1 + coalesce(max(version), 0), $2, $3, $4, $5, $6, $7, $8, $9, $10 from prices
           where usage_source = $2 and usage_unit = $3 and app_slug is not distinct from $4 and sku is not distinct from $5
           returning id, version, usage_source, usage_unit, app_slug, sku, rate as "rate: Json<Rate>", currency,
                     effective_from, created_by, created_at"#,
        new.id,
        new.usage_source.as_str(),
        new.usage_unit,
        new.app_slug,
        new.sku,
        Covers::of(new.usage_source).as_str(),
        Json(&new.rate) as _,
        currency,
        new.effective_from,
        by
    )
    .fetch_one(conn)
    .await?;
    row.price()
}

/// Waits for whoever else makes a price or rates by them. Answers the currency of all prices and ledgers, if there are any.
pub async fn lock_currency(conn: &mut PgConnection) -> sqlx::Result<Option<String>> {
    // Whoever serves has no right to lock a table that only grows.
    sqlx::query_scalar!("select 1 from pg_advisory_xact_lock(hashtext('prices'))")
        .fetch_one(&mut *conn)
        .await?;
    currency(conn).await
}

/// Waits for whoever makes a price, and keeps everybody from making another until the transaction ends.
pub async fn hold(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query_scalar!("select 1 from pg_advisory_xact_lock_shared(hashtext('prices'))")
        .fetch_one(conn)
        .await?;
    Ok(())
}

/// All prices and all ledgers have the same: that of the first price or of the first money that came in.
pub async fn currency(conn: &mut PgConnection) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!(
        "select coalesce((select currency from prices limit 1),
             (select currency from ledger_heads where currency is not null limit 1)) as currency"
    )
    .fetch_one(conn)
    .await
}

/// Every version there is. There are as many as administrators wrote.
pub async fn all(conn: &mut PgConnection) -> sqlx::Result<Vec<Price>> {
    let everything = Slice { after: None, limit: i64::MAX };
    Ok(list(conn, everything).await?.into_iter().map(|row| row.price).collect())
}

/// Those that apply to anything the project has used, now or at another time, by id.
pub async fn applying(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<Vec<PriceRow>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select id, version, usage_source, usage_unit, app_slug, sku, rate as "rate: Json<Rate>", currency, effective_from,
                  created_by, created_at
           from prices p where exists (
               select 1 from usage_hours h where h.project_id = $1 and h.usage_source = p.usage_source
                 and h.usage_unit = p.usage_unit and (p.app_slug is null or p.app_slug = h.app_slug)
                 and (p.sku is null or exists (select 1 from allocations a where a.id = h.allocation_id and a.sku = p.sku)))
           order by id"#,
        project
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Row::price).collect()
}

pub async fn list(conn: &mut PgConnection, slice: Slice) -> sqlx::Result<Vec<PriceRow>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select id, version, usage_source, usage_unit, app_slug, sku, rate as "rate: Json<Rate>", currency, effective_from,
                  created_by, created_at
           from prices where $1::uuid is null or id > $1 order by id limit $2"#,
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Row::price).collect()
}

/// Those of these ids, by id.
pub async fn of(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<PriceRow>> {
    let rows = sqlx::query_as!(
        Row,
        r#"select id, version, usage_source, usage_unit, app_slug, sku, rate as "rate: Json<Rate>", currency, effective_from,
                  created_by, created_at
           from prices where id = any($1) order by id"#,
        ids
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(Row::price).collect()
}
