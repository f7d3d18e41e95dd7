//! What a month of one thing under one price comes to. Only whoever posts to the project's ledger reads and writes these.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use domain::UsageSource;
use domain::rating::{Of, Series, Sum};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::parsed;

/// Every series of these months that these instances and allocations have.
pub async fn of(
    conn: &mut PgConnection,
    project: Uuid,
    months: &[NaiveDate],
    subjects: &[Uuid],
) -> sqlx::Result<BTreeMap<Series, Sum>> {
    let rows = sqlx::query!(
        "select month, usage_source, usage_unit, app_instance_id, allocation_id, price_id, quantity, amount_minor
         from rated_series
         where project_id = $1 and month = any($2) and coalesce(app_instance_id, allocation_id) = any($3)",
        project,
        months,
        subjects
    )
    .fetch_all(conn)
    .await?;
    let mut sums = BTreeMap::new();
    for row in rows {
        let of = Of {
            usage_source: parsed::<UsageSource>(&row.usage_source)?,
            usage_unit: row.usage_unit,
            app_instance_id: row.app_instance_id,
            allocation_id: row.allocation_id,
        };
        let series = Series { of, price_id: row.price_id, month: row.month };
        sums.insert(series, Sum { quantity: row.quantity, amount_minor: row.amount_minor });
    }
    Ok(sums)
}

pub async fn keep(conn: &mut PgConnection, project: Uuid, sums: &BTreeMap<Series, Sum>) -> sqlx::Result<()> {
    let all: Vec<(&Series, &Sum)> = sums.iter().collect();
    sqlx::query!(
        "insert into rated_series (project_id, month, usage_source, usage_unit, app_instance_id, allocation_id, price_id,
             quantity, amount_minor)
         select $1, * from unnest($2::date[], $3::text[], $4::text[], $5::uuid[], $6::uuid[], $7::uuid[], $8::bigint[],
             $9::bigint[])
         on conflict (project_id, month, usage_source, usage_unit, app_instance_id, allocation_id, price_id)
         do update set quantity = excluded.quantity, amount_minor = excluded.amount_minor",
        project,
        &all.iter().map(|(series, _)| series.month).collect::<Vec<_>>(),
        &all.iter().map(|(series, _)| series.of.usage_source.as_str().to_owned()).collect::<Vec<_>>(),
        &all.iter().map(|(series, _)| series.of.usage_unit.clone()).collect::<Vec<_>>(),
        &all.iter().map(|(series, _)| series.of.app_instance_id).collect::<Vec<_>>() as &[Option<Uuid>],
        &all.iter().map(|(series, _)| series.of.allocation_id).collect::<Vec<_>>() as &[Option<Uuid>],
        &all.iter().map(|(series, _)| series.price_id).collect::<Vec<_>>(),
        &all.iter().map(|(_, sum)| sum.quantity).collect::<Vec<_>>(),
        &all.iter().map(|(_, sum)| sum.amount_minor).collect::<Vec<_>>()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What the project was charged for a month, or the most that can be said.
pub async fn spent(conn: &mut PgConnection, project: Uuid, month: NaiveDate) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select least(coalesce(sum(amount_minor), 0), 9223372036854775807)::bigint as "spent!" from rated_series
           where project_id = $1 and month = $2"#,
        project,
        month
    )
    .fetch_one(conn)
    .await
}
