//! Random usage of instances and allocations, told late, twice, out of order and by clocks that are wrong; prices that change, also for the past; a rollup that is killed wherever
//! it goes: after each, the ledger is to the minor unit what a page of arithmetic says. A failing seed says its number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use activities::Env;
use chrono::{DateTime, TimeZone, Utc};
use domain::price::{Price, Rate, Tier};
use domain::{UsageSource, Window};
use engine::{RunState, Settings, Start, Strike, Workers, Workflow};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use store::usage_records::{self, Attribution, NewRecord};
use store::{billing_ledger, prices};
use uuid::Uuid;
use workflows::billing::rerate::RerateUsage;
use workflows::billing::rollup::RollUpUsage;

use crate::support::failing::when;
use crate::support::slow::short_or_slow;
use crate::support::story::{Story, quick};

const MINUTES: i64 = 50;
/// Two instances, then two allocations.
const THINGS: usize = 4;

fn source(thing: usize) -> UsageSource {
    if thing < 2 { UsageSource::AppRuntime } else { UsageSource::Allocation }
}

/// Two days around the turn of a month, so that series end and begin.
fn minute(number: i64) -> DateTime<Utc> {
    let start = Utc.with_ymd_and_hms(2026, 1, 31, 23, 40, 0).unwrap();
    start + chrono::TimeDelta::minutes(number)
}

/// What one project used and what it should have been charged, computed without a line of the platform's own code.
struct Model {
    project: Uuid,
    unit: String,
    things: [Uuid; THINGS],
    prices: Vec<Price>,
    /// Event to thing, minute and quantity: whoever comes first.
    events: BTreeMap<u32, (usize, i64, i64)>,
    /// Minutes that hold something nobody has rated.
    open: BTreeSet<i64>,
    /// Thing and minute to quantity and price, as last rated.
    rated: BTreeMap<(usize, i64), (i64, Option<usize>)>,
    /// Minutes of instances or of allocations that somebody asked to be rated again.
    again: BTreeSet<(UsageSource, i64)>,
}

impl Model {
    fn new(seed: u64) -> Model {
        Model {
            project: Uuid::from_u128(0x1000_0000 + u128::from(seed)),
            unit: format!("tokens_{seed}"),
            things: [1, 2, 3, 4].map(|n: u128| Uuid::from_u128((u128::from(seed) << 32) + n)),
            prices: Vec::new(),
            events: BTreeMap::new(),
            open: BTreeSet::new(),
            rated: BTreeMap::new(),
            again: BTreeSet::new(),
        }
    }

    /// What was used at this second, by whatever clock it was told.
    fn record(&self, id: u32, (thing, second, quantity): (usize, i64, i64)) -> NewRecord {
        let occurred_at = minute(0) + chrono::TimeDelta::seconds(second);
        let (own, id_of_it) = (source(thing), self.things[thing]);
        NewRecord {
            id: Uuid::now_v7(),
            of: Attribution {
                org_id: self.project,
                project_id: self.project,
                app_instance_id: (own == UsageSource::AppRuntime).then_some(id_of_it),
                allocation_id: (own == UsageSource::Allocation).then_some(id_of_it),
                app_slug: (own == UsageSource::AppRuntime).then(|| "writer".into()),
                operating_mode: None,
                control_plane_scope: None,
                runtime_backend: None,
                control_plane_component: None,
            },
            usage_source: own,
            usage_unit: self.unit.clone(),
            quantity,
            occurred_at,
            window: Window::of(occurred_at, 60),
            correlation_id: "c-model".into(),
            reference_id: None,
            metadata: json!({}),
            source: "/model".into(),
            event_id: id.to_string(),
        }
    }

    /// What is new in a window that was opened is rated by the prices of today; the rest keeps the price it has, unless
    /// somebody asked.
    fn roll_up(&mut self) {
        for at in std::mem::take(&mut self.open) {
            for thing in 0..THINGS {
                let again = self.again.contains(&(source(thing), at));
                let events = self.events.values().filter(|(of, when, _)| (*of, *when) == (thing, at));
                let quantity: i64 = events.map(|(_, _, quantity)| quantity).sum();
                if quantity > 0 {
                    let had = self.rated.get(&(thing, at)).and_then(|(_, price)| *price);
                    let price = had.filter(|_| !again).or_else(|| self.price_at(source(thing), at));
                    self.rated.insert((thing, at), (quantity, price));
                }
            }
            self.again.retain(|(_, asked)| *asked != at);
        }
    }

    /// The one that began last; of two that began at once, the later version.
    fn price_at(&self, of: UsageSource, at: i64) -> Option<usize> {
        let fits = |price: &Price| price.usage_source == of && price.effective_from <= minute(at);
        let begun = self.prices.iter().enumerate().filter(|(_, price)| fits(price));
        begun.max_by_key(|(_, price)| (price.effective_from, price.version)).map(|(place, _)| place)
    }

    fn owed(&self) -> i64 {
        let mut series: BTreeMap<(usize, usize, bool), i64> = BTreeMap::new();
        for ((thing, at), (quantity, price)) in &self.rated {
            if let Some(price) = price {
                let february = *at >= 20;
                *series.entry((*thing, *price, february)).or_default() += quantity;
            }
        }
        series.iter().map(|((_, price, _), quantity)| naive_cost(&self.prices[*price].rate, *quantity)).sum()
    }
}

/// Unit by unit in exact halves, as one would on paper.
fn naive_cost(rate: &Rate, quantity: i64) -> i64 {
    let (exact, per) = match rate {
        Rate::Flat { amount_minor } => return if quantity > 0 { *amount_minor } else { 0 },
        Rate::PerUnit { amount_minor, per } => (quantity * amount_minor, *per),
        Rate::Tiered { per, tiers } => {
            let amount = |unit: i64| {
                let tier = tiers.iter().find(|tier| tier.up_to.is_none_or(|end| unit <= end)).unwrap();
                tier.amount_minor
            };
            ((1..=quantity).map(amount).sum(), *per)
        }
    };
    let twice = 2 * exact;
    let below = exact.div_euclid(per);
    match (twice - 2 * below * per).cmp(&per) {
        std::cmp::Ordering::Less => below,
        std::cmp::Ordering::Greater => below + 1,
        std::cmp::Ordering::Equal => below + below % 2,
    }
}

fn random_rate(rng: &mut StdRng) -> Rate {
    match rng.random_range(0..3) {
        0 => Rate::Flat { amount_minor: rng.random_range(0..500) },
        1 => Rate::PerUnit { amount_minor: rng.random_range(0..50), per: rng.random_range(1..40) },
        _ => Rate::Tiered {
            per: rng.random_range(1..9),
            tiers: vec![
                Tier { up_to: Some(rng.random_range(1..200)), amount_minor: rng.random_range(0..20) },
                Tier { up_to: None, amount_minor: rng.random_range(0..20) },
            ],
        },
    }
}

struct Play {
    story: Story,
    workers: Workers,
}

impl Play {
    async fn new(seed: u64) -> Play {
        let rng = Mutex::new(StdRng::seed_from_u64(seed));
        let strikes = when(move |_| rng.lock().unwrap().random_ratio(1, 8).then_some(Strike::Crash));
        let settings = Settings { max_claims: 10_000, ..quick() };
        let story = Story::idle(settings, strikes).await;
        let env = Arc::new(Env::new(story.engine.clone()));
        let workers = Workers::start(&story.engine, env, workflows::registry());
        Play { story, workers }
    }

    async fn run<W: Workflow>(&self, workflow: &W) {
        let options = Start { correlation_id: "c-model".into(), ..Start::default() };
        let run = self.story.start_workflow(workflow, options).await.unwrap();
        assert_eq!(
            self.story.ends(run.id).await,
            RunState::Succeeded,
            "{}",
            self.story.describe(run.id).await
        );
    }

    async fn act(&self, model: &mut Model, rng: &mut StdRng) {
        let mut conn = self.story.pool.acquire().await.unwrap();
        match rng.random_range(0..10) {
            0..=5 => {
                let mut batch = Vec::new();
                for _ in 0..rng.random_range(1..20) {
                    // Few ids, so that many are told again, and then with other contents.
                    let id = rng.random_range(0..400);
                    // A clock may be wrong by more than a window.
                    let second = rng.random_range(0..MINUTES) * 60 + rng.random_range(-90..90);
                    batch.push((id, (rng.random_range(0..THINGS), second, rng.random_range(1..60))));
                }
                batch.sort_by_key(|(id, _)| *id);
                batch.dedup_by_key(|(id, _)| *id);
                let records: Vec<NewRecord> =
                    batch.iter().map(|(id, told)| model.record(*id, *told)).collect();
                usage_records::add(&mut conn, &records).await.unwrap();
                for (id, (thing, second, quantity)) in batch {
                    if let std::collections::btree_map::Entry::Vacant(slot) = model.events.entry(id) {
                        let at = second.div_euclid(60);
                        slot.insert((thing, at, quantity));
                        model.open.insert(at);
                    }
                }
            }
            6 | 7 => {
                self.run(&RollUpUsage {}).await;
                model.roll_up();
            }
            act => {
                let from = rng.random_range(-5..MINUTES);
                let usage_source = source(rng.random_range(0..THINGS));
                let price = Price {
                    id: Uuid::now_v7(),
                    version: 1,
                    usage_source,
                    usage_unit: model.unit.clone(),
                    app_slug: None,
                    sku: None,
                    rate: random_rate(rng),
                    effective_from: minute(from),
                };
                let made = prices::insert(&mut conn, &price, "EUR", Uuid::nil()).await.unwrap();
                model.prices.push(made.price);
                if act == 9 {
                    let usage_unit = model.unit.clone();
                    self.run(&RerateUsage { usage_source, usage_unit, from: minute(from) }).await;
                    let of_it = |(thing, at): &(usize, i64)| source(*thing) == usage_source && *at >= from;
                    let asked: Vec<i64> =
                        model.rated.keys().filter(|key| of_it(key)).map(|(_, at)| *at).collect();
                    model.open.extend(&asked);
                    model.again.extend(asked.iter().map(|at| (usage_source, *at)));
                    model.roll_up();
                }
            }
        }
    }

    async fn check(&self, model: &Model, seed: u64) {
        let charged: i64 = sqlx::query_scalar(
            "select coalesce(-sum(amount_minor), 0)::bigint from ledger_entries where project_id = $1",
        )
        .bind(model.project)
        .fetch_one(&self.story.pool)
        .await
        .unwrap();
        assert_eq!(charged, model.owed(), "seed {seed}");
        let by_hour: i64 = sqlx::query_scalar(
            "select coalesce(sum(amount_minor), 0)::bigint from usage_hours where project_id = $1",
        )
        .bind(model.project)
        .fetch_one(&self.story.pool)
        .await
        .unwrap();
        assert_eq!(by_hour, charged, "seed {seed}: hours and ledger agree");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_is_what_arithmetic_says_whatever_happened() {
    let play = Play::new(7).await;
    for seed in 0..short_or_slow(50, 1000) {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut model = Model::new(seed);
        for _ in 0..rng.random_range(4..14) {
            play.act(&mut model, &mut rng).await;
        }
        play.run(&RollUpUsage {}).await;
        model.roll_up();
        play.check(&model, seed).await;
        let mut conn = play.story.pool.acquire().await.unwrap();
        let head = billing_ledger::prove(&mut conn, model.project)
            .await
            .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert_eq!(head.balance_minor, -model.owed(), "seed {seed}: the kept balance is the sum");
        drop(conn);
        play.run(&RollUpUsage {}).await;
        play.check(&model, seed).await;
    }
    play.workers.stop().await;
    play.story.end().await;
}
