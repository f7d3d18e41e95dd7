//! The ledger's chain: every entry seals the one before it, so none can be changed, left out or put between without
//! breaking what comes after. Whoever has the entries can check that without the platform.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::metering::UsageSource;
use crate::word::UnknownWord;

/// What the first entry of a project seals.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LedgerEntryKind)]
pub enum EntryKind {
    /// What a window costs.
    Charge,
    /// Takes back a charge, to the minor unit.
    Reversal,
    /// What the rest of a series costs differently once a window has left it.
    Adjustment,
    /// Money that came in.
    Credit,
}

impl EntryKind {
    pub const ALL: [EntryKind; 4] =
        [EntryKind::Charge, EntryKind::Reversal, EntryKind::Adjustment, EntryKind::Credit];

    pub const fn as_str(self) -> &'static str {
        match self {
            EntryKind::Charge => "charge",
            EntryKind::Reversal => "reversal",
            EntryKind::Adjustment => "adjustment",
            EntryKind::Credit => "credit",
        }
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EntryKind {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<EntryKind, UnknownWord> {
        let named = EntryKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        named.ok_or_else(|| UnknownWord::new(word, "a kind of ledger entry"))
    }
}

/// An entry as it is sealed and shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LedgerEntry)]
pub struct Entry {
    pub project_id: Uuid,
    /// From 1, without gaps.
    #[schema(minimum = 1)]
    pub seq: i64,
    pub kind: EntryKind,
    /// How the balance changes: charges take from it.
    pub amount_minor: i64,
    pub currency: String,
    /// The window that it is for; credits have none.
    #[schema(required)]
    pub window_start: Option<DateTime<Utc>>,
    #[schema(required)]
    pub window_end: Option<DateTime<Utc>>,
    #[schema(required)]
    pub usage_source: Option<UsageSource>,
    #[schema(required)]
    pub usage_unit: Option<String>,
    #[schema(required)]
    pub app_instance_id: Option<Uuid>,
    #[schema(required)]
    pub allocation_id: Option<Uuid>,
    /// What was used within the window.
    #[schema(required)]
    pub quantity: Option<i64>,
    /// The price, and its version.
    #[schema(required)]
    pub price_id: Option<Uuid>,
    #[schema(required)]
    pub price_version: Option<i32>,
    /// The entry that a reversal takes back.
    #[schema(required)]
    pub reverses: Option<i64>,
    pub correlation_id: String,
    pub posted_at: DateTime<Utc>,
    /// The hash of the entry before; of the first, zeros.
    pub prev_hash: String,
    /// SHA-256 over the entry before and everything above.
    pub hash: String,
}

impl Entry {
    /// The hash that the entry must have: SHA-256 of the lines of its fields, in the order above.
    pub fn sealed(&self) -> String {
        let moment = |at: &DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Micros, true);
        let text = |value: Option<String>| value.unwrap_or_default();
        let lines = [
            self.prev_hash.clone(),
            self.project_id.to_string(),
            self.seq.to_string(),
            self.kind.to_string(),
            self.amount_minor.to_string(),
            self.currency.clone(),
            text(self.window_start.as_ref().map(moment)),
            text(self.window_end.as_ref().map(moment)),
            text(self.usage_source.map(|source| source.to_string())),
            text(self.usage_unit.clone()),
            text(self.app_instance_id.map(|id| id.to_string())),
            text(self.allocation_id.map(|id| id.to_string())),
            text(self.quantity.map(|quantity| quantity.to_string())),
            text(self.price_id.map(|id| id.to_string())),
            text(self.price_version.map(|version| version.to_string())),
            text(self.reverses.map(|seq| seq.to_string())),
            self.correlation_id.clone(),
            moment(&self.posted_at),
        ];
        Sha256::digest(lines.join("\n")).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What is wrong with the entry as one of its kind, however well it is sealed: what is charged must name the usage and the
    /// price that it follows from, and what comes in is money and nothing else.
    pub fn flaw(&self) -> Option<&'static str> {
        if self.kind == EntryKind::Credit {
            return self.flaw_of_credit();
        }
        if self.window_start.zip(self.window_end).is_none_or(|(start, end)| start >= end) {
            return Some("it is no credit, and names no window");
        }
        if self.usage_source.is_none() || self.usage_unit.is_none() || self.quantity.is_none() {
            return Some("it is no credit, and names no usage");
        }
        if self.price_id.is_none() || self.price_version.is_none() {
            return Some("it is no credit, and names no price");
        }
        let is_reversal = self.kind == EntryKind::Reversal;
        (is_reversal != self.reverses.is_some())
            .then_some("a reversal, and nothing else, names what it takes back")
    }

    fn flaw_of_credit(&self) -> Option<&'static str> {
        if self.amount_minor <= 0 {
            return Some("it is a credit that brings nothing in");
        }
        let is_of_usage = self.window_start.or(self.window_end).is_some()
            || self.usage_source.is_some()
            || self.usage_unit.is_some()
            || self.app_instance_id.or(self.allocation_id).is_some()
            || self.quantity.is_some()
            || self.price_id.is_some()
            || self.price_version.is_some()
            || self.reverses.is_some();
        is_of_usage.then_some("it is a credit that names usage")
    }
}

/// Where a chain breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {seq}: {why}")]
pub struct Broken {
    pub seq: i64,
    pub why: &'static str,
}

/// The end of a chain: what the next entry seals, and the balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub seq: i64,
    pub hash: String,
    pub balance_minor: i64,
}

impl Default for Head {
    fn default() -> Head {
        Head { seq: 0, hash: GENESIS.to_owned(), balance_minor: 0 }
    }
}

impl Head {
    /// The head after one more entry, if it is the next.
    pub fn then(&self, entry: &Entry) -> Result<Head, Broken> {
        let broken = |why| Err(Broken { seq: entry.seq, why });
        if entry.seq != self.seq + 1 {
            return broken("an entry is missing or out of order");
        }
        if entry.prev_hash != self.hash {
            return broken("it does not follow from the entry before");
        }
        if entry.sealed() != entry.hash {
            return broken("it is not what was sealed");
        }
        let Some(balance_minor) = self.balance_minor.checked_add(entry.amount_minor) else {
            return broken("the balance is more than can be counted");
        };
        Ok(Head { seq: entry.seq, hash: entry.hash.clone(), balance_minor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(head: &Head, amount_minor: i64) -> Entry {
        let mut entry = Entry {
            project_id: Uuid::from_u128(1),
            seq: head.seq + 1,
            kind: EntryKind::Charge,
            amount_minor,
            currency: "EUR".into(),
            window_start: None,
            window_end: None,
            usage_source: Some(UsageSource::AppRuntime),
            usage_unit: Some("tokens".into()),
            app_instance_id: None,
            allocation_id: None,
            quantity: Some(7),
            price_id: None,
            price_version: None,
            reverses: None,
            correlation_id: "c".into(),
            posted_at: DateTime::UNIX_EPOCH,
            prev_hash: head.hash.clone(),
            hash: String::new(),
        };
        entry.hash = entry.sealed();
        entry
    }

    #[test]
    fn a_chain_holds_as_it_was_written_and_no_other_way() {
        let mut head = Head::default();
        let mut chain = Vec::new();
        for amount in [-5, 3, -9] {
            let next = entry(&head, amount);
            head = head.then(&next).unwrap();
            chain.push(next);
        }
        assert_eq!((head.seq, head.balance_minor), (3, -11));
        let verdict =
            |chain: &[Entry]| chain.iter().try_fold(Head::default(), |head, entry| head.then(entry));
        assert_eq!(verdict(&chain), Ok(head));
        let mut changed = chain.clone();
        changed[1].amount_minor = 4;
        assert_eq!(verdict(&changed).unwrap_err().seq, 2);
        changed[1].hash = changed[1].sealed();
        assert_eq!(verdict(&changed).unwrap_err().seq, 3, "sealing it again breaks the next");
        assert!(verdict(&[chain[0].clone(), chain[2].clone()]).is_err());
        assert!(verdict(&chain[1..]).is_err());
    }

    #[test]
    fn a_charge_names_what_it_is_for_and_a_credit_nothing_at_all() {
        let head = Head::default();
        let charge = Entry {
            window_start: Some(DateTime::UNIX_EPOCH),
            window_end: DateTime::from_timestamp(60, 0),
            price_id: Some(Uuid::from_u128(2)),
            price_version: Some(1),
            ..entry(&head, -5)
        };
        assert_eq!(charge.flaw(), None);
        let adjustment = Entry { kind: EntryKind::Adjustment, ..charge.clone() };
        assert_eq!(adjustment.flaw(), None);
        let reversal = Entry { kind: EntryKind::Reversal, reverses: Some(1), ..charge.clone() };
        assert_eq!(reversal.flaw(), None);
        for nameless in [
            Entry { window_start: None, ..charge.clone() },
            Entry { window_end: None, ..charge.clone() },
            Entry { window_end: charge.window_start, ..charge.clone() },
            Entry { usage_source: None, ..charge.clone() },
            Entry { usage_unit: None, ..reversal.clone() },
            Entry { quantity: None, ..charge.clone() },
            Entry { price_id: None, ..adjustment.clone() },
            Entry { price_version: None, ..charge.clone() },
            Entry { reverses: Some(1), ..charge.clone() },
            Entry { reverses: None, ..reversal.clone() },
        ] {
            assert!(nameless.flaw().is_some(), "{nameless:?}");
        }
        let credit = Entry {
            kind: EntryKind::Credit,
            usage_source: None,
            usage_unit: None,
            quantity: None,
            ..entry(&head, 5)
        };
        assert_eq!(credit.flaw(), None);
        for wrong in [
            Entry { amount_minor: -5, ..credit.clone() },
            Entry { window_start: charge.window_start, ..credit.clone() },
            Entry { price_id: charge.price_id, ..credit.clone() },
            Entry { kind: EntryKind::Credit, ..charge },
        ] {
            assert!(wrong.flaw().is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn a_balance_that_cannot_be_counted_breaks_the_chain_and_never_wraps() {
        let deep = Head { balance_minor: i64::MIN + 5, ..Head::default() };
        assert_eq!(deep.then(&entry(&deep, -5)).unwrap().balance_minor, i64::MIN);
        assert!(deep.then(&entry(&deep, -6)).is_err());
    }
}
