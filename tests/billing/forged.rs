//! Bills that a cheating operator could hand out: the chain is sealed anew after every change and the balance follows, so
//! that each can be caught by one thing alone.

use api_types::{Bill, UsageRecord};
use chrono::TimeDelta;
use domain::ledger::{Broken, Entry, EntryKind, Head};
use serde_json::{Value, json};
use store::billing_ledger::{self, Kept, Occasion, Unproven};
use uuid::Uuid;

use super::ledger::{priced, rolled_up};
use super::office::Office;
use crate::cli::Shell;
use crate::http::admin;
use crate::support::realm::{DEMO, EXAMPLE, FAR_AWAY};

/// What is told of it, and what was done to an honest bill.
type Forgery = (&'static str, fn(&mut Bill));

/// Two events of one window, 16 tokens together, and what they cost: 24.
pub async fn honest(office: &Office) -> Bill {
    priced(office).await;
    office.tell(&[office.event("a", 10).await, office.event("b", 6).await]).await.with(200);
    rolled_up(office).await;
    exported(office).await
}

pub async fn exported(office: &Office) -> Bill {
    let path = format!("/api/v1/billing/bill?project_id={EXAMPLE}");
    let bill = office.platform.http.acting("viewer").get(&path).await.with(200);
    serde_json::from_value(bill).expect("a bill")
}

/// The chain as whoever writes to the database could write it.
pub fn resealed(mut bill: Bill) -> Bill {
    let mut head = Head::default();
    for entry in &mut bill.entries {
        entry.seq = head.seq + 1;
        entry.prev_hash = head.hash.clone();
        entry.hash = entry.sealed();
        head = head.then(entry).expect("it follows");
    }
    bill.balance.entries = head.seq;
    bill.balance.head_hash = head.hash;
    bill.balance.balance_minor = head.balance_minor;
    bill
}

/// An entry of nothing but an amount.
fn bare(kind: EntryKind, amount_minor: i64, like: &Entry) -> Entry {
    Entry {
        kind,
        amount_minor,
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
        ..like.clone()
    }
}

pub fn kept(shell: &Shell, name: &str, bill: &Bill) -> String {
    let file = shell.path(name);
    std::fs::write(&file, serde_json::to_string(bill).unwrap()).unwrap();
    file.display().to_string()
}

/// What `verify` finds wrong with it.
pub async fn problems(shell: &Shell, words: &[&str]) -> Vec<String> {
    let command = ["bill", "verify", "-o", "json"].into_iter();
    let said = shell.ask(&command.chain(words.iter().copied()).collect::<Vec<_>>()).await;
    let report: Value = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    let problems: Vec<String> = serde_json::from_value(report["problems"].clone()).unwrap();
    assert_eq!(said.code, Some(if problems.is_empty() { 0 } else { 6 }), "{said:?}");
    problems
}

async fn each_is_caught_by_one_check(forgeries: &[Forgery]) {
    let office = Box::pin(Office::open()).await;
    let honest = Box::pin(honest(&office)).await;
    Box::pin(office.close()).await;
    let shell = Shell::new();
    let file = kept(&shell, "honest.json", &resealed(honest.clone()));
    assert_eq!(problems(&shell, &[&file]).await, [""; 0], "sealing it again changes nothing");
    for (words, forge) in forgeries {
        let mut forged = honest.clone();
        forge(&mut forged);
        let file = kept(&shell, "forged.json", &resealed(forged));
        let problems = problems(&shell, &[&file]).await;
        assert!(
            matches!(problems.as_slice(), [only] if only.contains(words)),
            "{words}, and nothing else: {problems:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_charged_for_nothing_does_not_hold() {
    each_is_caught_by_one_check(&[
        ("entry 2 counts for nothing: it is a credit that brings nothing in", |bill| {
            bill.entries.push(bare(EntryKind::Credit, -100_000, &bill.entries[0]));
        }),
        ("entry 2 counts for nothing: it is no credit, and names no window", |bill| {
            bill.entries.push(bare(EntryKind::Charge, -100_000, &bill.entries[0]));
        }),
        ("entry 2 counts for nothing: it is no credit, and names no window", |bill| {
            bill.entries.push(bare(EntryKind::Adjustment, -100_000, &bill.entries[0]));
        }),
        ("entry 1 counts for nothing: it is no credit, and names no price", |bill| {
            bill.prices.clear();
            (bill.entries[0].price_id, bill.entries[0].price_version) = (None, None);
            for record in &mut bill.usage {
                (record.price_id, record.rated) = (None, false);
            }
        }),
    ])
    .await;
}

/// Another report of the second event's six tokens, which are charged for too: 22 cost 33.
fn counted_again(bill: &mut Bill, change: fn(&mut UsageRecord)) {
    let mut again = bill.usage[1].clone();
    again.quantity = 6;
    change(&mut again);
    bill.usage.push(again);
    for record in &mut bill.usage {
        record.rated_quantity = Some(22);
    }
    (bill.entries[0].quantity, bill.entries[0].amount_minor) = (Some(22), -33);
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_that_is_counted_twice_or_moved_does_not_hold() {
    each_is_caught_by_one_check(&[
        ("is listed twice", |bill| {
            counted_again(bill, |record| record.event_id = Some("c".into()));
        }),
        ("counts event b of /apps/writer again", |bill| {
            counted_again(bill, |record| record.id = Uuid::from_u128(1));
        }),
        ("does not say which event it is", |bill| {
            counted_again(bill, |record| {
                (record.id, record.source, record.event_id) = (Uuid::from_u128(1), None, None);
            });
        }),
        ("is not of the window that it is counted in", |bill| {
            bill.usage[1].occurred_at = bill.usage[1].window_end;
        }),
        ("is not of the window that it is counted in", |bill| {
            bill.usage[1].occurred_at = bill.usage[1].window_start - TimeDelta::microseconds(1);
        }),
        ("is of another project", |bill| bill.usage[1].project_id = FAR_AWAY),
        ("has a quantity that nobody can have told", |bill| {
            (bill.usage[0].quantity, bill.usage[1].quantity) = (17, -1);
        }),
        ("is listed twice", |bill| {
            let mut dearer = bill.prices[0].clone();
            dearer.amount_minor = Some(30);
            bill.prices.insert(0, dearer);
            bill.entries[0].amount_minor = -240;
        }),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_was_rewritten_does_not_follow_from_the_bill_before() {
    let office = Office::open().await;
    let older = honest(&office).await;
    office.tell(&[office.event("c", 4).await]).await.with(200);
    rolled_up(&office).await;
    let newer = exported(&office).await;
    let told: Vec<Value> =
        sqlx::query_scalar("select data from outbox where type = 'billing.ledger_posted' order by pos")
            .fetch_all(&office.platform.story.pool)
            .await
            .unwrap();
    office.close().await;
    let heads: Vec<(&Value, &Value)> =
        told.iter().map(|data| (&data["last_seq"], &data["head_hash"])).collect();
    let ends = [&older, &newer].map(|bill| (json!(bill.balance.entries), json!(bill.balance.head_hash)));
    assert_eq!(heads, ends.iter().map(|(seq, hash)| (seq, hash)).collect::<Vec<_>>());
    // Two tokens more from the beginning on: 18 cost 27, and what came then costs as much as before.
    let mut rewritten = newer.clone();
    rewritten.usage[1].quantity += 2;
    for record in &mut rewritten.usage[..2] {
        record.rated_quantity = Some(18);
    }
    (rewritten.entries[0].quantity, rewritten.entries[0].amount_minor) = (Some(18), -27);
    let shell = Shell::new();
    let [older, newer, rewritten] =
        [("older.json", older), ("newer.json", newer), ("rewritten.json", resealed(rewritten))]
            .map(|(name, bill)| kept(&shell, name, &bill));
    for follows in [&older, &newer] {
        assert_eq!(problems(&shell, &[&newer, "--after", follows]).await, [""; 0]);
    }
    assert_eq!(problems(&shell, &[&rewritten]).await, [""; 0], "by itself it holds");
    assert_eq!(
        problems(&shell, &[&rewritten, "--after", &older]).await,
        ["entry 1 is not the one that the older bill ends with"]
    );
    assert_eq!(
        problems(&shell, &[&older, "--after", &newer]).await,
        ["the older bill has 2 entries, and this one 1"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_came_in_is_told_apart_from_the_balance() {
    let office = Office::open().await;
    let body = json!({ "amount_minor": 500, "currency": "EUR" });
    office.platform.http.post(&admin(&format!("/projects/{EXAMPLE}/credits")), body).await.with(201);
    let bill = honest(&office).await;
    office.close().await;
    let shell = Shell::new();
    let said = shell.ask(&["bill", "verify", &kept(&shell, "bill.json", &bill), "-o", "json"]).await;
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((&report["credits_minor"], &report["balance_minor"]), (&json!(500), &json!(476)), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_is_for_nothing_is_neither_written_nor_proven() {
    let office = Office::open().await;
    let body = json!({ "amount_minor": 500, "currency": "EUR" });
    office.platform.http.post(&admin(&format!("/projects/{EXAMPLE}/credits")), body).await.with(201);
    let at = office.now().await;
    let mut conn = office.platform.story.pool.acquire().await.unwrap();
    let (kept, _) = billing_ledger::find(&mut conn, EXAMPLE).await.unwrap().expect("a ledger");
    let occasion =
        Occasion { org_id: DEMO, project_id: EXAMPLE, currency: "EUR", correlation_id: "c-forged", at };
    let taken = [occasion.credit(&kept.head, -100_000)];
    let refused = billing_ledger::append(&mut conn, DEMO, &taken).await.unwrap_err();
    assert!(refused.to_string().contains("ledger_entries_name_what_they_are_for"), "{refused}");
    // Whoever owns the database can take the rule away.
    sqlx::raw_sql("alter table ledger_entries drop constraint ledger_entries_name_what_they_are_for")
        .execute(&mut *conn)
        .await
        .unwrap();
    billing_ledger::append(&mut conn, DEMO, &taken).await.unwrap();
    let head = kept.head.then(&taken[0]).unwrap();
    billing_ledger::keep(&mut conn, EXAMPLE, &Kept { head, ..kept }).await.unwrap();
    let unproven = billing_ledger::prove(&mut conn, EXAMPLE).await.unwrap_err();
    assert!(matches!(unproven, Unproven::Flaw(_, Broken { seq: 2, .. })), "{unproven}");
    drop(conn);
    office.close().await;
}
