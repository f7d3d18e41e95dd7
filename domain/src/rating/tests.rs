//! Rating held against another way of computing it: group what was used by series, price each once.

use proptest::prelude::*;

use super::*;
use crate::price::{Rate, Tier};

const INSTANCES: [Uuid; 2] = [Uuid::from_u128(1), Uuid::from_u128(2)];

fn window(minute: i64) -> Window {
    let at = |minute: i64| DateTime::from_timestamp(1_767_225_600 + minute * 60, 0).unwrap();
    Window { start: at(minute), end: at(minute + 1) }
}

fn of(instance: usize) -> Of {
    Of {
        usage_source: UsageSource::AppRuntime,
        usage_unit: "tokens".into(),
        app_instance_id: Some(INSTANCES[instance]),
        allocation_id: None,
    }
}

fn price(number: u128, from_minute: i64, rate: Rate) -> Price {
    Price {
        id: Uuid::from_u128(number),
        version: i32::try_from(number).unwrap(),
        usage_source: UsageSource::AppRuntime,
        usage_unit: "tokens".into(),
        app_slug: None,
        sku: None,
        rate,
        effective_from: window(from_minute).start,
    }
}

/// A ledger in memory, by the rules of the one in the database.
#[derive(Default)]
struct Books {
    lines: Vec<Line>,
    sums: BTreeMap<Series, Sum>,
    postings: Vec<Posting>,
}

impl Books {
    /// Everything that stands is to be rated by the prices of today.
    fn again(&mut self) {
        self.lines.iter_mut().for_each(|line| line.again = true);
    }

    fn post(&mut self, used: &[Used], prices: &[Price]) -> usize {
        let outcome = rate(used, &self.lines, prices, &mut self.sums);
        for change in outcome.changes {
            self.lines.retain(|line| (line.window, &line.of) != (change.line.window, &change.line.of));
            let entry = change.charge.map(|place| i64::try_from(self.postings.len() + place).unwrap());
            self.lines.push(Line { entry, ..change.line });
        }
        for line in self.lines.iter_mut().filter(|line| used.iter().any(|one| one.window == line.window)) {
            line.again = false;
        }
        self.postings.extend(outcome.postings.iter().cloned());
        outcome.postings.len()
    }

    fn paid(&self) -> i64 {
        self.postings.iter().map(|posting| posting.amount_minor).sum()
    }
}

/// What the lines cost if every series is priced once.
fn owed(lines: &[Line], prices: &[Price]) -> i64 {
    let mut series: BTreeMap<(Of, Uuid, NaiveDate), i64> = BTreeMap::new();
    for line in lines {
        if let Some(price) = line.price_id {
            *series.entry((line.of.clone(), price, month_of(line.window.start))).or_default() +=
                line.quantity;
        }
    }
    let cost = |(_, id, _): &(Of, Uuid, NaiveDate), quantity| {
        prices.iter().find(|price| price.id == *id).unwrap().rate.cost(quantity)
    };
    series.iter().map(|(key, quantity)| cost(key, *quantity)).sum()
}

#[test]
fn a_late_event_takes_the_charge_back_and_charges_anew() {
    let prices = [price(1, 0, Rate::PerUnit { amount_minor: 3, per: 2 })];
    let mut books = Books::default();
    let used = |quantity| [Used { window: window(0), of: of(0), app_slug: None, sku: None, quantity }];
    assert_eq!(books.post(&used(10), &prices), 1);
    assert_eq!(books.post(&used(10), &prices), 0, "the same again changes nothing");
    assert_eq!(books.post(&used(12), &prices), 2);
    let told: Vec<(EntryKind, i64)> = books.postings.iter().map(|one| (one.kind, one.amount_minor)).collect();
    use EntryKind::{Charge, Reversal};
    assert_eq!(told, [(Charge, 15), (Reversal, -15), (Charge, 18)]);
    assert_eq!(books.postings[1].reverses, Some(0));
}

#[test]
fn what_comes_to_more_than_can_be_kept_is_refused_and_never_wraps() {
    let dear = [price(1, 0, Rate::PerUnit { amount_minor: 1_000_000_000, per: 1 })];
    let cheap = [price(1, 0, Rate::PerUnit { amount_minor: 0, per: 1 })];
    let used =
        |minute, quantity| Used { window: window(minute), of: of(0), app_slug: None, sku: None, quantity };
    let refused =
        |used: &[Used], prices: &[Price]| !rate(used, &[], prices, &mut BTreeMap::new()).left.is_empty();
    assert!(!refused(&[used(0, 1_000_000)], &dear), "exactly as much as fits");
    assert!(refused(&[used(0, 1_000_001)], &dear));
    assert!(refused(&[used(0, 1_000_000), used(1, 1)], &dear), "many that fit by themselves");
    assert!(refused(&[used(0, i64::MAX)], &dear));
    assert!(refused(&[used(0, i64::MAX), used(1, i64::MAX)], &cheap), "also where it costs nothing");
}

#[test]
fn what_cannot_be_counted_stays_as_it_was_and_all_else_is_charged() {
    let prices = [price(1, 0, Rate::PerUnit { amount_minor: 1_000_000_000, per: 1 })];
    let used = |minute, instance, quantity| Used {
        window: window(minute),
        of: of(instance),
        app_slug: None,
        sku: None,
        quantity,
    };
    let mut books = Books::default();
    books.post(&[used(0, 0, 5)], &prices);
    let before = (books.lines.clone(), books.sums.clone());
    let outcome = rate(&[used(0, 0, 1_000_001)], &books.lines, &prices, &mut books.sums);
    assert_eq!((outcome.postings, outcome.changes), (vec![], vec![]), "not even its charge goes back");
    assert_eq!(outcome.left, [Left { window: window(0), of: of(0) }]);
    assert_eq!((books.lines.clone(), books.sums.clone()), before);
    books.post(&[used(0, 0, 1_000_001), used(0, 1, 7), used(1, 0, 3)], &prices);
    assert_eq!(books.paid(), (5 + 7 + 3) * 1_000_000_000);
    assert_eq!(books.paid(), owed(&books.lines, &prices));
    // A price that it can be counted by takes it out of the series.
    let cheap = [prices[0].clone(), price(2, 0, Rate::PerUnit { amount_minor: 1, per: 1 })];
    books.again();
    books.post(&[used(0, 0, 1_000_001), used(0, 1, 7), used(1, 0, 3)], &cheap);
    assert_eq!(books.paid(), 1_000_001 + 7 + 3);
}

#[test]
fn what_was_rated_keeps_its_price_until_it_is_asked_for_again() {
    let dear = Rate::PerUnit { amount_minor: 9, per: 1 };
    let prices = [price(1, 0, Rate::PerUnit { amount_minor: 1, per: 1 }), price(2, 0, dear)];
    let mut books = Books::default();
    let used = |instance, quantity| Used {
        window: window(0),
        of: of(instance),
        app_slug: Some("writer".into()),
        sku: None,
        quantity,
    };
    books.post(&[used(0, 10)], &prices[..1]);
    books.post(&[used(0, 11), used(1, 1)], &prices);
    assert_eq!(
        books.paid(),
        11 + 9,
        "the late event costs what the rest of its window did; what is new, the price of today"
    );
    books.again();
    books.post(&[used(0, 11), used(1, 1)], &prices);
    assert_eq!(books.paid(), 99 + 9);
}

#[test]
fn an_adjustment_belongs_to_the_app_whose_window_left_its_series() {
    let tiers = vec![Tier { up_to: Some(10), amount_minor: 5 }, Tier { up_to: None, amount_minor: 1 }];
    let prices =
        [price(1, 0, Rate::Tiered { per: 1, tiers }), price(2, 1, Rate::PerUnit { amount_minor: 2, per: 1 })];
    let mut books = Books::default();
    let used = |minute| Used {
        window: window(minute),
        of: of(0),
        app_slug: Some("writer".into()),
        sku: None,
        quantity: 10,
    };
    books.post(&[used(1)], &prices[..1]);
    books.post(&[used(0)], &prices[..1]);
    books.again();
    books.post(&[used(0), used(1)], &prices);
    let adjusted: Vec<_> = books.postings.iter().filter(|one| one.kind == EntryKind::Adjustment).collect();
    let told: Vec<_> = adjusted.iter().map(|one| (one.amount_minor, one.app_slug.as_deref())).collect();
    assert_eq!(told, [(40, Some("writer"))], "the rest is now in the dear tier");
}

#[test]
fn usage_without_a_price_costs_nothing_until_it_has_one() {
    let mut books = Books::default();
    let used = [Used { window: window(5), of: of(0), app_slug: None, sku: None, quantity: 10 }];
    assert_eq!(books.post(&used, &[]), 0);
    assert_eq!(books.lines[0].price_id, None);
    assert_eq!(books.post(&used, &[price(1, 0, Rate::Flat { amount_minor: 7 })]), 1);
    assert_eq!(books.paid(), 7);
}

fn rates() -> impl Strategy<Value = Rate> {
    prop_oneof![
        (0_i64..1000).prop_map(|amount_minor| Rate::Flat { amount_minor }),
        (0_i64..1000, 1_i64..1000).prop_map(|(amount_minor, per)| Rate::PerUnit { amount_minor, per }),
        (1_i64..500, 0_i64..50, 0_i64..50, 1_i64..20).prop_map(|(edge, first, then, per)| Rate::Tiered {
            per,
            tiers: vec![
                Tier { up_to: Some(edge), amount_minor: first },
                Tier { up_to: None, amount_minor: then }
            ],
        }),
    ]
}

proptest! {
    /// Windows grow in any order, prices of the past appear, everything is rated again at random: what was paid is always
    /// what everything costs.
    #[test]
    fn what_was_paid_is_what_it_costs_whatever_happened_in_between(
        steps in prop::collection::vec((0_i64..6, 0_usize..2, 1_i64..300, prop::option::of((0_i64..6, rates()))), 1..40),
    ) {
        let (mut books, mut prices, mut quantities) = (Books::default(), Vec::new(), BTreeMap::new());
        for (minute, instance, more, new_price) in steps {
            if let Some((from, rate)) = new_price {
                prices.push(price(u128::try_from(prices.len()).unwrap() + 1, from, rate));
            }
            *quantities.entry((minute, instance)).or_default() += more;
            // Only the window that changed is rated, or everything.
            let whole = more % 5 == 0;
            let used: Vec<Used> = quantities
                .iter()
                .filter(|((at, _), _)| whole || *at == minute)
                .map(|((at, instance), quantity)| Used {
                    window: window(*at), of: of(*instance), app_slug: None, sku: None, quantity: *quantity,
                })
                .collect();
            let before = books.lines.clone();
            if whole {
                books.again();
            }
            books.post(&used, &prices);
            for line in before.iter().filter(|line| !whole && line.price_id.is_some()) {
                let now = books.lines.iter().find(|now| (now.window, &now.of) == (line.window, &line.of));
                prop_assert_eq!(now.unwrap().price_id, line.price_id, "nobody asked for another price");
            }
            prop_assert_eq!(books.paid(), owed(&books.lines, &prices));
            prop_assert_eq!(books.post(&used, &prices), 0, "twice is once");
        }
        for (place, posting) in books.postings.iter().enumerate() {
            if let Some(reversed) = posting.reverses {
                let reversed = &books.postings[usize::try_from(reversed).unwrap()];
                prop_assert_eq!(reversed.amount_minor, -posting.amount_minor, "entry {} to the minor unit", place);
            }
        }
    }
}
