//! A report of usage, and the two names it may have. It is kept as it was named, which is all that a server of the release
//! before looks for: whichever of both is told an event again finds what the other has. Where an event of another instance
//! has that name, an instance's own report is kept under one that is its alone. Told by somebody else as well it is still the
//! same report.

use std::collections::HashMap;

use sqlx::PgConnection;
use store::meters;
use store::usage_records::{self, NewRecord};
use uuid::Uuid;

/// Source and id.
type Name = (String, String);

pub(super) struct Report {
    /// As it was told.
    pub record: NewRecord,
    pub by_itself: bool,
}

impl Report {
    /// The name that it was told under, and the one that is its instance's alone: the platform's own, so that nobody else can
    /// take it.
    fn names(&self) -> [Name; 2] {
        let NewRecord { source, event_id, of, .. } = &self.record;
        let own =
            format!("{}/instances/{}/{source}", meters::PLATFORM, of.app_instance_id.unwrap_or_default());
        [(source.clone(), event_id.clone()), (own, event_id.clone())]
    }
}

/// What was told before, and of which instance.
pub(super) struct Told(HashMap<Name, Option<Uuid>>);

impl Told {
    /// Until the transaction ends nobody else of the project looks.
    pub(super) async fn before(
        conn: &mut PgConnection,
        project: Uuid,
        reports: impl Iterator<Item = &Report>,
    ) -> sqlx::Result<Told> {
        let (sources, ids): (Vec<String>, Vec<String>) = reports.flat_map(Report::names).unzip();
        usage_records::take_turns(conn, project).await?;
        Ok(Told(usage_records::named(conn, project, &sources, &ids).await?))
    }

    /// What is to be kept of it; nothing of what was told before. What is told after it is told before the next. A name that
    /// another instance has is never its duplicate: whoever tells for several must learn that the usage is not counted.
    pub(super) fn judge(&mut self, report: &Report) -> Result<Option<NewRecord>, String> {
        let (instance, names) = (report.record.of.app_instance_id, report.names());
        if names.iter().any(|name| self.0.get(name) == Some(&instance)) {
            return Ok(None);
        }
        let [told, own] = names;
        let name = match self.0.contains_key(&told) {
            false => told,
            true if report.by_itself => own,
            true => return Err("taken: an event of another instance has this source and id".to_owned()),
        };
        let record = NewRecord { source: name.0.clone(), ..report.record.clone() };
        self.0.insert(name, instance);
        Ok(Some(record))
    }
}
