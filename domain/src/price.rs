//! Prices: what a quantity costs, and which version of which price holds for a window.
//!
//! **The one rounding rule.** A series is what one instance or allocation used of one unit under one price version within
//! one calendar month (UTC). Its cost is the exact price of its whole quantity, rounded once to whole minor units, half to
//! even. Windows are charged the difference that they make to it, so cutting time finer never changes what is paid.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::metering::{ALLOCATION_SECONDS, GPU_SECONDS, SESSION_SECONDS, UsageSource};

/// What a price pays for. Every second of an allocation is paid for once: by a price of capacity, which only allocations
/// have. What apps count costs on top, as a service, and never again as capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    Capacity,
    Service,
}

impl Covers {
    pub const fn as_str(self) -> &'static str {
        match self {
            Covers::Capacity => "capacity",
            Covers::Service => "service",
        }
    }

    /// The only thing that a price of this source can pay for.
    pub const fn of(source: UsageSource) -> Covers {
        match source {
            UsageSource::Allocation => Covers::Capacity,
            UsageSource::AppRuntime => Covers::Service,
        }
    }
}

/// How a quantity becomes an amount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "snake_case")]
pub enum Rate {
    /// Once per series, if anything was used.
    Flat { amount_minor: i64 },
    /// In proportion: so much for every `per` units.
    PerUnit { amount_minor: i64, per: i64 },
    /// In proportion, step by step: each tier prices what lies above the one before.
    Tiered { per: i64, tiers: Vec<Tier> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PriceTier)]
pub struct Tier {
    /// The quantity at which the tier ends; the last has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub up_to: Option<i64>,
    /// For every `per` units within the tier.
    #[schema(minimum = 0, maximum = 1_000_000_000_i64)]
    pub amount_minor: i64,
}

/// The most that a price may ask, and the most units it may be for.
pub const MOST_MINOR: i64 = 1_000_000_000;
pub const MOST_PER: i64 = 1_000_000_000;

impl Rate {
    /// All that is wrong with it: pointer and sentence.
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        let mut bound = |pointer: String, value: i64, least: i64, most: i64| {
            if !(least..=most).contains(&value) {
                found.push((pointer, format!("must be a whole number from {least} to {most}")));
            }
        };
        match self {
            Rate::Flat { amount_minor } => bound("/amount_minor".into(), *amount_minor, 0, MOST_MINOR),
            Rate::PerUnit { amount_minor, per } => {
                bound("/amount_minor".into(), *amount_minor, 0, MOST_MINOR);
                bound("/per".into(), *per, 1, MOST_PER);
            }
            Rate::Tiered { per, tiers } => {
                bound("/per".into(), *per, 1, MOST_PER);
                for (place, tier) in tiers.iter().enumerate() {
                    bound(format!("/tiers/{place}/amount_minor"), tier.amount_minor, 0, MOST_MINOR);
                }
                found.extend(steps(tiers));
            }
        }
        found
    }

    /// What this much of one series costs.
    pub fn cost(&self, quantity: i64) -> i64 {
        let quantity = i128::from(quantity.max(0));
        match self {
            Rate::Flat { amount_minor } => i64::from(quantity > 0) * amount_minor,
            Rate::PerUnit { amount_minor, per } => half_even(quantity * i128::from(*amount_minor), *per),
            Rate::Tiered { per, tiers } => {
                let (mut below, mut exact) = (0_i128, 0_i128);
                for tier in tiers {
                    let end = tier.up_to.map_or(quantity, |up_to| quantity.min(up_to.into()));
                    exact += (end - below).max(0) * i128::from(tier.amount_minor);
                    below = below.max(end);
                }
                half_even(exact, *per)
            }
        }
    }
}

/// Tiers rise, and only the last is open.
fn steps(tiers: &[Tier]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let Some((last, others)) = tiers.split_last() else {
        return vec![("/tiers".to_owned(), "must have at least 1 item".to_owned())];
    };
    if last.up_to.is_some() {
        let pointer = format!("/tiers/{}/up_to", others.len());
        found.push((pointer, "must be left out: the last tier has no end".to_owned()));
    }
    let mut below = 0;
    for (place, tier) in others.iter().enumerate() {
        let pointer = format!("/tiers/{place}/up_to");
        match tier.up_to {
            None => found.push((pointer, "is required: only the last tier has no end".to_owned())),
            Some(up_to) if up_to <= below => found.push((pointer, format!("must be more than {below}"))),
            Some(up_to) => below = up_to,
        }
    }
    found
}

/// `exact / per`, neither of them negative, to the nearest whole number; what lies in the middle goes to the even one.
fn half_even(exact: i128, per: i64) -> i64 {
    let per = i128::from(per.max(1));
    let (whole, rest) = (exact / per, exact % per);
    let up = match (2 * rest).cmp(&per) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Equal => whole % 2,
        std::cmp::Ordering::Greater => 1,
    };
    i64::try_from(whole + up).unwrap_or(i64::MAX)
}

/// One version of a price. It never changes; a later version takes its place from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    pub id: Uuid,
    pub version: i32,
    pub usage_source: UsageSource,
    pub usage_unit: String,
    /// Only for this app.
    pub app_slug: Option<String>,
    /// Only for allocations of this kind.
    pub sku: Option<String>,
    pub rate: Rate,
    pub effective_from: DateTime<Utc>,
}

/// What is to be priced.
#[derive(Clone, Copy, Debug)]
pub struct Priced<'a> {
    pub usage_source: UsageSource,
    pub usage_unit: &'a str,
    pub app_slug: Option<&'a str>,
    pub sku: Option<&'a str>,
    /// When the window begins.
    pub at: DateTime<Utc>,
}

impl Price {
    fn applies(&self, to: &Priced<'_>) -> bool {
        let fits = |own: &Option<String>, other: Option<&str>| own.is_none() || own.as_deref() == other;
        self.usage_source == to.usage_source
            && self.usage_unit == to.usage_unit
            && self.effective_from <= to.at
            && fits(&self.app_slug, to.app_slug)
            && fits(&self.sku, to.sku)
    }

    fn rank(&self) -> (bool, bool, DateTime<Utc>, i32) {
        (self.app_slug.is_some(), self.sku.is_some(), self.effective_from, self.version)
    }

    /// All that is wrong with whom it is for: pointer and sentence.
    pub fn problems(&self, covers: Option<Covers>) -> Vec<(String, String)> {
        let mut found = self.rate.problems();
        let mut refuse = |pointer: &str, why: &str| found.push((pointer.to_owned(), why.to_owned()));
        match self.usage_source {
            UsageSource::Allocation => {
                if self.usage_unit != ALLOCATION_SECONDS {
                    refuse(
                        "/usage_unit",
                        "must be allocation_seconds: allocations are counted in nothing else",
                    );
                }
                if self.app_slug.is_some() {
                    refuse("/app_slug", "must be left out: an allocation costs the same whatever runs there");
                }
            }
            UsageSource::AppRuntime => {
                if self.sku.is_some() {
                    refuse("/sku", "must be left out: what an app counts costs the same wherever it runs");
                }
            }
        }
        let seconds = [SESSION_SECONDS, GPU_SECONDS].contains(&self.usage_unit.as_str());
        if self.usage_source == UsageSource::AppRuntime && seconds && covers.is_none() {
            refuse(
                "/covers",
                "is required: the allocation's price pays for these seconds already. Say service where this is for something else",
            );
        }
        if covers.is_some_and(|covers| covers != Covers::of(self.usage_source)) {
            let why = match self.usage_source {
                UsageSource::Allocation => "must be capacity: that is what an allocation is",
                UsageSource::AppRuntime => {
                    "must be service: the allocation's price pays for its seconds already"
                }
            };
            refuse("/covers", why);
        }
        found
    }
}

/// The price that holds: the most particular that is in effect, and of its versions the one that began last.
pub fn choose<'a>(prices: &'a [Price], priced: &Priced<'_>) -> Option<&'a Price> {
    prices.iter().filter(|price| price.applies(priced)).max_by_key(|price| price.rank())
}

/// A price, and since when it is known.
#[derive(Clone, Debug)]
pub struct Known {
    pub price: Price,
    pub since: DateTime<Utc>,
}

/// Whether [`choose`] can have given this answer at some moment between two, by the prices that were known then.
pub fn can_be_chosen(
    known: &[Known],
    priced: &Priced<'_>,
    answer: Option<Uuid>,
    (from, until): (DateTime<Utc>, DateTime<Utc>),
) -> bool {
    let applying = || known.iter().filter(|one| one.price.applies(priced));
    let Some(id) = answer else { return applying().all(|one| one.since > from) };
    let found = applying().find(|one| one.price.id == id && one.since <= until);
    found.is_some_and(|one| {
        let earliest = one.since.max(from);
        applying().all(|other| other.since > earliest || other.price.rank() <= one.price.rank())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn price(version: i32, from: i64, slug: Option<&str>) -> Price {
        Price {
            id: Uuid::from_u128(version.unsigned_abs().into()),
            version,
            usage_source: UsageSource::AppRuntime,
            usage_unit: "tokens".into(),
            app_slug: slug.map(str::to_owned),
            sku: None,
            rate: Rate::Flat { amount_minor: 1 },
            effective_from: DateTime::from_timestamp(from, 0).unwrap(),
        }
    }

    fn chosen(prices: &[Price], at: i64) -> Option<i32> {
        let at = DateTime::from_timestamp(at, 0).unwrap();
        let (usage_source, usage_unit) = (UsageSource::AppRuntime, "tokens");
        let priced = Priced { usage_source, usage_unit, app_slug: Some("notes"), sku: None, at };
        choose(prices, &priced).map(|price| price.version)
    }

    #[test]
    fn the_most_particular_price_in_effect_holds_and_of_its_versions_the_last() {
        let prices =
            [price(1, 0, None), price(2, 100, None), price(3, 50, Some("notes")), price(4, 0, Some("other"))];
        assert_eq!(chosen(&prices, 10), Some(1));
        assert_eq!(chosen(&prices, 60), Some(3));
        assert_eq!(chosen(&prices, 200), Some(3), "a newer general price does not undo a particular one");
        assert_eq!(chosen(&prices[..2], 100), Some(2));
        assert_eq!(chosen(&prices[1..2], 99), None);
    }

    #[test]
    fn a_price_can_be_chosen_only_while_it_is_known_and_none_better_is() {
        let moment = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let known: Vec<Known> = [(price(1, 0, None), 0), (price(2, 0, None), 500)]
            .into_iter()
            .map(|(price, since)| Known { price, since: moment(since) })
            .collect();
        let can = |version: Option<u128>, from, until| {
            let (usage_source, usage_unit) = (UsageSource::AppRuntime, "tokens");
            let priced = Priced { usage_source, usage_unit, app_slug: None, sku: None, at: moment(100) };
            can_be_chosen(&known, &priced, version.map(Uuid::from_u128), (moment(from), moment(until)))
        };
        assert!(
            can(Some(1), 160, 400) && can(Some(1), 160, 900),
            "rated before the second was known, and kept"
        );
        assert!(!can(Some(1), 600, 900), "the second was known from the beginning");
        assert!(!can(Some(2), 160, 400), "it was not known yet");
        assert!(can(Some(2), 160, 900));
        assert!(!can(None, 160, 900) && !can(Some(7), 160, 900));
    }

    #[test]
    fn halves_go_to_the_even_amount() {
        let rate = Rate::PerUnit { amount_minor: 1, per: 2 };
        assert_eq!([0, 1, 2, 3, 4, 5, 7].map(|quantity| rate.cost(quantity)), [0, 0, 1, 2, 2, 2, 4]);
    }

    #[test]
    fn tiers_price_what_lies_within_them() {
        let tiers = vec![Tier { up_to: Some(100), amount_minor: 10 }, Tier { up_to: None, amount_minor: 1 }];
        let rate = Rate::Tiered { per: 1, tiers };
        assert_eq!([0, 1, 100, 101, 250].map(|quantity| rate.cost(quantity)), [0, 10, 1000, 1001, 1150]);
        assert_eq!(rate.problems(), []);
        let open_early =
            vec![Tier { up_to: None, amount_minor: 1 }, Tier { up_to: Some(5), amount_minor: 1 }];
        assert_eq!(Rate::Tiered { per: 1, tiers: open_early }.problems().len(), 2);
    }

    #[test]
    fn an_app_cannot_charge_for_the_seconds_of_an_allocation_again() {
        let app = price(1, 0, None);
        assert_eq!(app.problems(Some(Covers::Service)), []);
        assert_eq!(app.problems(Some(Covers::Capacity))[0].0, "/covers");
        assert_eq!(app.problems(None), [], "what apps count themselves is nobody's second");
        for unit in [SESSION_SECONDS, GPU_SECONDS] {
            let seconds = Price { usage_unit: unit.into(), ..app.clone() };
            assert_eq!(seconds.problems(None)[0].0, "/covers", "{unit}");
            assert_eq!(seconds.problems(Some(Covers::Service)), []);
        }
        let again = Price { usage_source: UsageSource::Allocation, usage_unit: "gpu_seconds".into(), ..app };
        assert_eq!(again.problems(None)[0].0, "/usage_unit");
    }

    proptest! {
        /// However a quantity is cut into windows, the differences add up to the cost of the whole, and that is never
        /// further from the exact price than half a minor unit.
        #[test]
        fn cutting_finer_never_changes_what_is_paid(
            pieces in prop::collection::vec(0_i64..1_000_000, 1..50),
            amount_minor in 0_i64..1_000_000,
            per in 1_i64..100_000,
        ) {
            let rate = Rate::PerUnit { amount_minor, per };
            let (mut so_far, mut paid) = (0, 0);
            for piece in &pieces {
                paid += rate.cost(so_far + piece) - rate.cost(so_far);
                so_far += piece;
            }
            prop_assert_eq!(paid, rate.cost(so_far));
            let error = i128::from(paid) * i128::from(per) - i128::from(so_far) * i128::from(amount_minor);
            prop_assert!(2 * error.abs() <= i128::from(per));
        }

        #[test]
        fn more_never_costs_less(quantity in 0_i64..1_000_000, more in 0_i64..1_000, edge in 1_i64..1_000_000) {
            let tiers = vec![Tier { up_to: Some(edge), amount_minor: 7 }, Tier { up_to: None, amount_minor: 3 }];
            let rate = Rate::Tiered { per: 11, tiers };
            prop_assert!(rate.cost(quantity) <= rate.cost(quantity + more));
        }
    }
}
