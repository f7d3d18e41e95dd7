//! What this node did, on its own disk. A task is written down before it is begun and its result before it is told, so
//! after a restart nothing is done twice and no result is lost; a removed instance stays removed.
//!
//! The file is a log of JSON lines, synced line by line. It is rewritten to what still matters when it is opened, and whenever
//! most of it does not any more. Where that cannot be, it is written on as it is.

mod log;
mod memory;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use node_protocol::{Envelope, Generations, Outcome, Refusal};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use self::log::Log;
use self::memory::Memory;

#[derive(Debug, thiserror::Error)]
pub enum JournalFault {
    #[error("the journal {path} cannot be used: {error}")]
    Disk { path: PathBuf, error: std::io::Error },
    #[error("line {line} of the journal {path} cannot be read: {error}")]
    Broken { path: PathBuf, line: usize, error: serde_json::Error },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
enum Entry {
    Begun {
        key: String,
        task_id: Uuid,
        instance_id: Option<Uuid>,
        generation: i64,
        epoch: i64,
    },
    Finished {
        key: String,
        outcome: Outcome,
    },
    /// The platform has the result.
    Told {
        key: String,
    },
    /// Nothing of these generations is started here again.
    Removed {
        instance_id: Uuid,
        generations: Generations,
    },
    Reported {
        sequence: i64,
    },
}

/// What to do with a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Do,
    /// It was done before: this is what became of it.
    Known(Outcome),
    Refuse(Refusal),
}

pub struct Journal {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    log: Log,
    memory: Memory,
    /// How many lines the file has, and how many of them mattered when it was last rewritten.
    lines: usize,
    mattered: usize,
}

/// So many lines that do not matter are not worth a rewriting.
const IDLE_LINES: usize = 1000;

impl Journal {
    pub fn open(path: &Path) -> Result<Journal, JournalFault> {
        let Found { mut memory, lines, length } = read(path)?;
        let (log, lines) = match rewrite(path, &mut memory) {
            Ok(written) => written,
            // A full disk has no room for another file beside it, and the agent must be able to start there.
            Err(error) => {
                tracing::warn!(%error, "the journal cannot be rewritten, and is written on as it is");
                let file = File::options().write(true).open(path);
                let file = file.map_err(|_| JournalFault::Disk { path: path.to_owned(), error })?;
                (Log::found(file, length), lines)
            }
        };
        let inner = Inner { log, memory, lines, mattered: lines };
        Ok(Journal { path: path.to_owned(), inner: Mutex::new(inner) })
    }

    /// Decides on a task and, if it is to be done, writes down that it begins. `needs` is the generation whose workload it
    /// starts or asks; what takes away needs none.
    pub fn admit(&self, task: &Envelope, needs: Option<i64>) -> Result<Verdict, JournalFault> {
        let mut inner = self.inner();
        let verdict = inner.memory.judge(task, needs);
        if verdict == Verdict::Do {
            self.write(
                &mut inner,
                Entry::Begun {
                    key: task.idempotency_key.clone(),
                    task_id: task.task_id,
                    instance_id: task.instance_id,
                    generation: task.generation,
                    epoch: task.epoch,
                },
            )?;
        }
        Ok(verdict)
    }

    /// Writes down what became of a task that was begun in an earlier life and is open still.
    pub fn settle(&self, key: &str, outcome: &Outcome) -> Result<(), JournalFault> {
        let mut inner = self.inner();
        if inner.memory.is_open(key) {
            self.write(&mut inner, Entry::Finished { key: key.to_owned(), outcome: outcome.clone() })?;
        }
        Ok(())
    }

    pub fn finish(&self, key: &str, outcome: &Outcome) -> Result<(), JournalFault> {
        let entry = Entry::Finished { key: key.to_owned(), outcome: outcome.clone() };
        self.write(&mut self.inner(), entry)
    }

    pub fn told(&self, key: &str) -> Result<(), JournalFault> {
        self.write(&mut self.inner(), Entry::Told { key: key.to_owned() })
    }

    /// Written before anything is taken away: a launch that comes late is then refused, whatever happens.
    pub fn bury(&self, instance_id: Uuid, generations: Generations) -> Result<(), JournalFault> {
        self.write(&mut self.inner(), Entry::Removed { instance_id, generations })
    }

    /// The number of the next report; it rises over restarts too.
    pub fn next_report(&self) -> Result<i64, JournalFault> {
        let mut inner = self.inner();
        let sequence = inner.memory.sequence().saturating_add(1);
        self.write(&mut inner, Entry::Reported { sequence })?;
        Ok(sequence)
    }

    /// Reports have higher numbers than this from here on. Whether that is news.
    pub fn count_on_from(&self, sequence: i64) -> Result<bool, JournalFault> {
        let mut inner = self.inner();
        let is_news = inner.memory.sequence() < sequence;
        if is_news {
            self.write(&mut inner, Entry::Reported { sequence })?;
        }
        Ok(is_news)
    }

    /// Results that the platform does not have yet, by task.
    pub fn untold(&self) -> Vec<(Uuid, String, Outcome)> {
        self.inner().memory.untold()
    }

    /// Whether this result is among them.
    pub fn owes(&self, key: &str) -> bool {
        self.inner().memory.owes(key)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, inner: &mut Inner, entry: Entry) -> Result<(), JournalFault> {
        let written = inner.log.append(&line(&entry));
        written.map_err(|error| JournalFault::Disk { path: self.path.clone(), error })?;
        inner.memory.take(entry);
        inner.lines += 1;
        if inner.lines > 2 * inner.mattered + IDLE_LINES {
            self.tidy(inner);
        }
        Ok(())
    }

    /// What cannot be rewritten now goes on growing, and is tried again after as many lines: nothing of it is lost.
    fn tidy(&self, inner: &mut Inner) {
        match rewrite(&self.path, &mut inner.memory) {
            Ok((log, lines)) => (inner.log, inner.lines) = (log, lines),
            Err(error) => tracing::warn!(%error, "the journal cannot be rewritten"),
        }
        inner.mattered = inner.lines;
    }
}

/// Whole or not at all. The file that was written is the one that is written on, so that no line can go astray.
fn rewrite(path: &Path, memory: &mut Memory) -> std::io::Result<(Log, usize)> {
    memory.forget();
    let (fresh, entries) = (path.with_extension("new"), memory.entries());
    let mut text = String::new();
    for entry in &entries {
        text.push_str(&line(entry));
        text.push('\n');
    }
    let put = || -> std::io::Result<File> {
        let mut file = File::create(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)?;
        Ok(file)
    };
    // Half of one would only take room where there is too little.
    let file = put().inspect_err(|_| drop(std::fs::remove_file(&fresh)))?;
    // From here on this is the journal, whether the folder says so after a crash or not.
    let synced = path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all());
    if let Err(error) = synced {
        tracing::warn!(%error, "the journal's folder cannot be synced");
    }
    Ok((Log::new(file, text.len() as u64), entries.len()))
}

fn line(entry: &Entry) -> String {
    serde_json::to_string(entry).unwrap_or_default()
}

/// What the file comes to, and how much of it is whole lines.
#[derive(Default)]
struct Found {
    memory: Memory,
    lines: usize,
    length: u64,
}

/// A last line that was cut off in the middle of writing was never relied upon, so it is left out.
fn read(path: &Path) -> Result<Found, JournalFault> {
    let disk = |error| JournalFault::Disk { path: path.to_owned(), error };
    let mut found = Found::default();
    let mut file = match File::open(path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(disk(error)),
    };
    // As bytes: it may have been cut off in the middle of a letter.
    let mut text = Vec::new();
    while file.read_until(b'\n', &mut text).map_err(disk)? > 0 {
        let is_last = file.fill_buf().map_err(disk)?.is_empty();
        match serde_json::from_slice(&text) {
            Ok(entry) if text.ends_with(b"\n") => found.memory.take(entry),
            Err(error) if !is_last => {
                return Err(JournalFault::Broken { path: path.to_owned(), line: found.lines + 1, error });
            }
            _ => return Ok(found),
        }
        found.lines += 1;
        found.length += text.len() as u64;
        text.clear();
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
