//! The journal of one run in memory: its finished and intended operations by name, and the signals kept for it.

use std::collections::HashMap;
use std::fmt;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::event::{Stored, What};
use crate::state::{Op, StepState};

/// Steps are journaled by name plus an explicit key where one name occurs more than once, never by a counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct StepId {
    pub(crate) name: &'static str,
    pub(crate) key: String,
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { f.write_str(self.name) } else { write!(f, "{}/{}", self.name, self.key) }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its place among the run's operations.
    pub(crate) pos: i32,
    pub(crate) op: Op,
    /// False until it was handed to a checkpoint: its first entry says what it is, later ones how it stands.
    pub(crate) written: bool,
    pub(crate) state: StepState,
    pub(crate) undoable: bool,
    pub(crate) attempt: i32,
    pub(crate) attempt_base: i32,
    pub(crate) undo_attempt: i32,
    pub(crate) undo_base: i32,
    pub(crate) input_hash: Vec<u8>,
    pub(crate) input: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) deadline_at: Option<DateTime<Utc>>,
    pub(crate) started_at: DateTime<Utc>,
}

impl Entry {
    /// Did this step possibly leave something behind that its undo must take back?
    pub(crate) fn owes_undo(&self) -> bool {
        self.undoable && !matches!(self.state, StepState::Compensated | StepState::Skipped)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Journal {
    entries: HashMap<String, HashMap<String, Entry>>,
    operations: usize,
    /// Where the next row goes.
    next_seq: i32,
    /// Why it cannot be replayed here: a newer release may write words that this one does not know.
    unreadable: Option<String>,
}

impl Journal {
    pub(crate) fn get(&self, id: &StepId) -> Option<&Entry> {
        self.entries.get(id.name)?.get(&id.key)
    }

    pub(crate) fn get_mut(&mut self, id: &StepId) -> Option<&mut Entry> {
        self.entries.get_mut(id.name)?.get_mut(&id.key)
    }

    pub(crate) fn insert(&mut self, id: &StepId, entry: Entry) {
        self.operations += 1;
        self.entries.entry(id.name.to_owned()).or_default().insert(id.key.clone(), entry);
    }

    pub(crate) fn remove(&mut self, name: &str, key: &str) {
        let gone = self.entries.get_mut(name).and_then(|keys| keys.remove(key));
        self.operations -= usize::from(gone.is_some());
    }

    pub(crate) fn len(&self) -> usize {
        self.operations
    }

    /// When the first of its operations was begun.
    pub(crate) fn began_at(&self) -> Option<DateTime<Utc>> {
        self.entries.values().flat_map(HashMap::values).map(|entry| entry.started_at).min()
    }

    pub(crate) fn owes(&self, id: &StepId) -> bool {
        self.get(id).is_some_and(Entry::owes_undo)
    }

    /// The steps whose undo is still owed, last first, as an operator would read them.
    pub(crate) fn owed(&self) -> Vec<String> {
        self.those(Entry::owes_undo)
    }

    /// The steps that were begun and have not come to an end, last first.
    pub(crate) fn unfinished(&self) -> Vec<String> {
        self.those(|entry| !matches!(entry.state, StepState::Succeeded | StepState::Failed))
    }

    fn those(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<String> {
        let mut those: Vec<(i32, String)> = Vec::new();
        for (name, keys) in &self.entries {
            for (key, entry) in keys.iter().filter(|(_, entry)| wanted(entry)) {
                those.push((entry.pos, if key.is_empty() { name.clone() } else { format!("{name}/{key}") }));
            }
        }
        those.sort_unstable_by(|a, b| b.cmp(a));
        those.into_iter().map(|(_, step)| step).collect()
    }

    pub(crate) fn next_seq(&self) -> i32 {
        self.next_seq
    }

    pub(crate) fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// Reads the journals anew: what a former owner committed just before it lost the run is there too. One that cannot be
    /// read says so and leaves the others alone.
    pub(crate) async fn load(conn: &mut PgConnection, runs: &[Uuid]) -> sqlx::Result<HashMap<Uuid, Journal>> {
        if runs.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query!(
            r#"select run_id, seq, events::text as "events!" from engine.journal where run_id = any($1)
               order by run_id, seq"#,
            runs
        )
        .fetch_all(conn)
        .await?;
        let mut journals: HashMap<Uuid, Journal> = HashMap::new();
        for row in rows {
            let journal = journals.entry(row.run_id).or_default();
            journal.next_seq = row.seq + 1;
            match serde_json::from_str::<Vec<Stored>>(&row.events) {
                Ok(events) => events.into_iter().for_each(|event| journal.replay(event)),
                Err(error) => journal.unreadable = Some(format!("row {}: {error}", row.seq)),
            }
        }
        Ok(journals)
    }

    fn replay(&mut self, event: Stored) {
        let output = event.output.map(|raw| Box::<str>::from(raw).into_string());
        let known = self.entries.get_mut(&event.name).and_then(|keys| keys.get_mut(&event.key));
        match (event.e, known) {
            (What::Settle, Some(entry)) => {
                entry.state = event.state.unwrap_or(entry.state);
                entry.attempt = event.attempt.unwrap_or(entry.attempt);
                entry.undo_attempt = event.undo_attempt.unwrap_or(entry.undo_attempt);
                entry.attempt_base = event.attempt_base.unwrap_or(entry.attempt_base);
                entry.undo_base = event.undo_base.unwrap_or(entry.undo_base);
                entry.output = output.or_else(|| entry.output.take());
            }
            (What::Intend, None) => {
                let (Some(pos), Some(op), Some(state), Some(started_at)) =
                    (event.pos, event.op, event.state, event.started_at)
                else {
                    return;
                };
                self.operations += 1;
                let entry = Entry {
                    pos,
                    op,
                    written: true,
                    state,
                    undoable: event.undoable.unwrap_or(false),
                    attempt: 1,
                    attempt_base: 0,
                    undo_attempt: 0,
                    undo_base: 0,
                    input_hash: event.hash,
                    input: None,
                    output,
                    deadline_at: event.deadline_at,
                    started_at,
                };
                self.entries.entry(event.name).or_default().insert(event.key, entry);
            }
            _ => {}
        }
    }
}

/// A signal that came and was not used yet.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) dedupe_key: String,
    pub(crate) payload: String,
}

impl Kept {
    pub(crate) async fn load(
        conn: &mut PgConnection,
        runs: &[Uuid],
    ) -> sqlx::Result<HashMap<Uuid, Vec<Kept>>> {
        if runs.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query!(
            r#"select run_id, name, dedupe_key, payload::text as "payload!" from engine.signal
               where run_id = any($1) and state = 'kept' order by created_at, dedupe_key"#,
            runs
        )
        .fetch_all(conn)
        .await?;
        let mut kept: HashMap<Uuid, Vec<Kept>> = HashMap::new();
        for r in rows {
            kept.entry(r.run_id).or_default().push(Kept {
                name: r.name,
                dedupe_key: r.dedupe_key,
                payload: r.payload,
            });
        }
        Ok(kept)
    }
}
