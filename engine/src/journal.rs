//! The journal of one run in memory: its finished and intended operations by name, and the signals kept for it.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

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
    pub(crate) seq: i32,
    pub(crate) op: Op,
    /// False until the row was handed to a checkpoint: it is then inserted rather than updated.
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
    rows: usize,
}

impl Journal {
    pub(crate) fn get(&self, id: &StepId) -> Option<&Entry> {
        self.entries.get(id.name)?.get(&id.key)
    }

    pub(crate) fn get_mut(&mut self, id: &StepId) -> Option<&mut Entry> {
        self.entries.get_mut(id.name)?.get_mut(&id.key)
    }

    pub(crate) fn insert(&mut self, id: &StepId, entry: Entry) {
        self.rows += 1;
        self.entries.entry(id.name.to_owned()).or_default().insert(id.key.clone(), entry);
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    pub(crate) fn owes(&self, id: &StepId) -> bool {
        self.get(id).is_some_and(Entry::owes_undo)
    }

    /// The steps whose undo is still owed, last first, as an operator would read them.
    pub(crate) fn owed(&self) -> Vec<String> {
        let mut owed: Vec<(i32, String)> = Vec::new();
        for (name, keys) in &self.entries {
            for (key, entry) in keys.iter().filter(|(_, e)| e.owes_undo()) {
                owed.push((entry.seq, if key.is_empty() { name.clone() } else { format!("{name}/{key}") }));
            }
        }
        owed.sort_unstable_by(|a, b| b.cmp(a));
        owed.into_iter().map(|(_, step)| step).collect()
    }

    pub(crate) async fn load(conn: &mut PgConnection, runs: &[Uuid]) -> sqlx::Result<HashMap<Uuid, Journal>> {
        if runs.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = sqlx::query!(
            r#"select run_id, name, key, seq, op, state, undoable, attempt, attempt_base, undo_attempt, undo_base, input_hash,
                      output::text, deadline_at, started_at
               from engine.step where run_id = any($1)"#,
            runs
        )
        .fetch_all(conn)
        .await?;
        let mut journals: HashMap<Uuid, Journal> = HashMap::new();
        for r in rows {
            let state = StepState::from_str(&r.state).map_err(|e| sqlx::Error::Decode(Box::new(e)))?;
            let journal = journals.entry(r.run_id).or_default();
            journal.rows += 1;
            journal.entries.entry(r.name).or_default().insert(
                r.key,
                Entry {
                    seq: r.seq,
                    op: Op::from_str(&r.op).map_err(|e| sqlx::Error::Decode(Box::new(e)))?,
                    written: true,
                    state,
                    undoable: r.undoable,
                    attempt: r.attempt,
                    attempt_base: r.attempt_base,
                    undo_attempt: r.undo_attempt,
                    undo_base: r.undo_base,
                    input_hash: r.input_hash,
                    input: None,
                    output: r.output,
                    deadline_at: r.deadline_at,
                    started_at: r.started_at,
                },
            );
        }
        Ok(journals)
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
