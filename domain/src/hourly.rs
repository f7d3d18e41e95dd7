//! What an instance would cost by the hour: what it adds by itself, and what its allocation costs meanwhile, whatever stands
//! on it. By the same choice of prices as rating; what is asked once a month is no price of an hour.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::metering::{ALLOCATION_SECONDS, GPU_SECONDS, SESSION_SECONDS, UsageSource};
use crate::price::{Price, Priced, Rate, choose};

const HOUR: i64 = 3600;

/// What is about to run, and where.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub app_slug: &'a str,
    pub sku: Option<&'a str>,
    pub gpu_count: u32,
    pub at: DateTime<Utc>,
}

/// One price that would apply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HourlyLine {
    pub usage_source: UsageSource,
    pub usage_unit: String,
    /// Of an hour.
    pub quantity: i64,
    pub amount_minor: i64,
    pub price_id: Uuid,
    pub price_version: i32,
}

/// Those that apply, of the units that the platform counts itself.
pub fn lines(prices: &[Price], wanted: &Wanted<'_>) -> Vec<HourlyLine> {
    let counted = [
        (UsageSource::AppRuntime, SESSION_SECONDS, HOUR),
        (UsageSource::AppRuntime, GPU_SECONDS, HOUR * i64::from(wanted.gpu_count)),
        (UsageSource::Allocation, ALLOCATION_SECONDS, HOUR),
    ];
    let line = |(usage_source, unit, quantity): (UsageSource, &str, i64)| {
        let capacity = usage_source == UsageSource::Allocation;
        let priced = Priced {
            usage_source,
            usage_unit: unit,
            app_slug: Some(wanted.app_slug).filter(|_| !capacity),
            sku: wanted.sku.filter(|_| capacity),
            at: wanted.at,
        };
        let price = choose(prices, &priced)?;
        let once = matches!(price.rate, Rate::Flat { .. });
        (quantity > 0 && !once).then(|| HourlyLine {
            usage_source,
            usage_unit: unit.to_owned(),
            quantity,
            amount_minor: price.rate.cost(quantity),
            price_id: price.id,
            price_version: price.version,
        })
    };
    counted.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(
        source: UsageSource,
        unit: &str,
        amount_minor: i64,
        app: Option<&str>,
        sku: Option<&str>,
    ) -> Price {
        Price {
            id: Uuid::nil(),
            version: 1,
            usage_source: source,
            usage_unit: unit.to_owned(),
            app_slug: app.map(str::to_owned),
            sku: sku.map(str::to_owned),
            rate: Rate::PerUnit { amount_minor, per: HOUR },
            effective_from: DateTime::UNIX_EPOCH,
        }
    }

    fn amounts(prices: &[Price], gpu_count: u32) -> Vec<(String, i64)> {
        let at = DateTime::UNIX_EPOCH;
        let wanted = Wanted { app_slug: "hello", sku: Some("h100"), gpu_count, at };
        lines(prices, &wanted).into_iter().map(|line| (line.usage_unit, line.amount_minor)).collect()
    }

    #[test]
    fn an_hour_is_priced_as_it_would_be_rated() {
        use UsageSource::{Allocation, AppRuntime};
        let prices = [
            price(AppRuntime, SESSION_SECONDS, 10, None, None),
            price(AppRuntime, SESSION_SECONDS, 7, Some("hello"), None),
            price(AppRuntime, GPU_SECONDS, 100, None, None),
            price(Allocation, ALLOCATION_SECONDS, 300, None, Some("h100")),
            price(Allocation, ALLOCATION_SECONDS, 900, None, Some("h200")),
            price(AppRuntime, "tokens", 5, None, None),
        ];
        let told = |unit: &str, amount| (unit.to_owned(), amount);
        assert_eq!(
            amounts(&prices, 2),
            [told(SESSION_SECONDS, 7), told(GPU_SECONDS, 200), told(ALLOCATION_SECONDS, 300)]
        );
        assert_eq!(amounts(&prices, 0), [told(SESSION_SECONDS, 7), told(ALLOCATION_SECONDS, 300)]);
        assert_eq!(amounts(&[], 2), []);
    }

    #[test]
    fn what_is_asked_once_a_month_is_no_price_of_an_hour() {
        let mut flat = price(UsageSource::AppRuntime, SESSION_SECONDS, 0, None, None);
        flat.rate = Rate::Flat { amount_minor: 5000 };
        assert_eq!(amounts(&[flat], 1), []);
    }
}
