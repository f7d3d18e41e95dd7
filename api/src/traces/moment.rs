//! A place in a timeline: the time, then the kind, then the id, so that entries of the same instant have an order too.

use api_types::{TraceEntry, TraceKind};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::paging::Bookmark;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moment {
    at: DateTime<Utc>,
    kind: TraceKind,
    id: String,
}

impl Moment {
    pub(super) fn of(entry: &TraceEntry) -> Moment {
        Moment { at: entry.at, kind: entry.kind, id: entry.id.clone() }
    }

    /// From where on entries of this kind come after the moment: of its very time, those with a greater id than this.
    pub(super) fn bound(after: Option<&Moment>, kind: TraceKind) -> (DateTime<Utc>, Option<&str>) {
        match after {
            None => (DateTime::UNIX_EPOCH, Some("")),
            Some(moment) if kind == moment.kind => (moment.at, Some(&moment.id)),
            Some(moment) if kind > moment.kind => (moment.at, Some("")),
            Some(moment) => (moment.at, None),
        }
    }
}

impl Bookmark for Moment {
    fn written(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn read(text: &str) -> Option<Moment> {
        let moment: Moment = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
        // The database has no text with NUL, and no year beyond these.
        let known = (0..=9999).contains(&chrono::Datelike::year(&moment.at));
        (known && !moment.id.contains('\0')).then_some(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_back_and_orders_kinds_within_its_instant() {
        let moment = Moment { at: DateTime::UNIX_EPOCH, kind: TraceKind::Step, id: "r/launch".to_owned() };
        assert_eq!(Moment::read(&moment.written()), Some(moment.clone()));
        assert_eq!(Moment::read("e30"), None);
        let bound = |kind| Moment::bound(Some(&moment), kind).1;
        assert_eq!(bound(TraceKind::Request), None);
        assert_eq!(bound(TraceKind::Step), Some("r/launch"));
        assert_eq!(bound(TraceKind::Event), Some(""));
    }
}
