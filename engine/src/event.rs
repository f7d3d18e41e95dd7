//! What a journal row tells: operations begun, settled, tried. Written once per checkpoint as one JSON text, so payloads
//! that are JSON already are copied as they are.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::state::{Op, StepState};

#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A new operation.
    Intend(Intend),
    /// A known operation changes state.
    Settle(Settle),
    /// A try that succeeded.
    Tried(Tried),
}

#[derive(Debug, Clone)]
pub(crate) struct Intend {
    pub(crate) name: String,
    pub(crate) key: String,
    /// Its place among the run's operations.
    pub(crate) pos: i32,
    pub(crate) op: Op,
    pub(crate) state: StepState,
    pub(crate) undoable: bool,
    pub(crate) input_hash: Vec<u8>,
    pub(crate) input: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) deadline_at: Option<DateTime<Utc>>,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Settle {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) state: StepState,
    pub(crate) attempt: i32,
    pub(crate) undo_attempt: i32,
    pub(crate) output: Option<String>,
    pub(crate) error: Option<String>,
    pub(crate) finished_at: Option<DateTime<Utc>>,
}

/// One try of a step, forward or undo.
#[derive(Debug, Clone)]
pub(crate) struct Tried {
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) undo: bool,
    pub(crate) attempt: i32,
    pub(crate) outcome: &'static str,
    pub(crate) error: Option<String>,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) at: DateTime<Utc>,
}

impl Event {
    /// Did the run get further? Beginning the same step once more does not count.
    pub(crate) fn is_progress(&self) -> bool {
        match self {
            Event::Intend(_) => true,
            Event::Settle(s) => !matches!(s.state, StepState::Running | StepState::Compensating),
            Event::Tried(_) => false,
        }
    }

    pub(crate) fn is_of(&self, name: &str, key: &str) -> bool {
        match self {
            Event::Intend(i) => i.name == name && i.key == key,
            Event::Settle(s) => s.name == name && s.key == key,
            Event::Tried(t) => t.name == name && t.key == key,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let text = |t: &Option<String>| t.as_ref().map_or(0, String::len);
        256 + match self {
            Event::Intend(i) => text(&i.input) + text(&i.output) + text(&i.error),
            Event::Settle(s) => text(&s.output) + text(&s.error),
            Event::Tried(t) => text(&t.error),
        }
    }

    fn write(&self, json: &mut Object<'_>) {
        match self {
            Event::Intend(i) => i.write(json),
            Event::Settle(s) => s.write(json),
            Event::Tried(t) => t.write(json.word("e", "tried")),
        };
    }

    /// Whether this event says all that a try before it says, but for its outcome and its beginning.
    fn tells_of(&self, tried: &Tried) -> bool {
        let (attempt, finished) = match self {
            Event::Intend(i) if !tried.undo => (1, i.finished_at),
            Event::Settle(s) => (if tried.undo { s.undo_attempt } else { s.attempt }, s.finished_at),
            Event::Intend(_) | Event::Tried(_) => return false,
        };
        attempt == tried.attempt && finished.is_some() && self.is_of(&tried.name, &tried.key)
    }
}

impl Intend {
    fn write<'a, 'b>(&self, json: &'a mut Object<'b>) -> &'a mut Object<'b> {
        json.word("e", "intend")
            .text("name", &self.name)
            .text("key", &self.key)
            .number("pos", self.pos)
            .word("op", self.op.as_str())
            .word("state", self.state.as_str())
            .if_set("undoable", self.undoable)
            .word("hash", &hex(&self.input_hash))
            .raw("input", self.input.as_deref())
            .raw("output", self.output.as_deref())
            .raw("error", self.error.as_deref())
            .time("deadline_at", self.deadline_at)
            .time("started_at", Some(self.started_at))
            .time("finished_at", self.finished_at)
    }
}

impl Settle {
    fn write<'a, 'b>(&self, json: &'a mut Object<'b>) -> &'a mut Object<'b> {
        json.word("e", "settle")
            .text("name", &self.name)
            .text("key", &self.key)
            .word("state", self.state.as_str())
            .number("attempt", self.attempt);
        if self.undo_attempt > 0 {
            json.number("undo_attempt", self.undo_attempt);
        }
        json.raw("output", self.output.as_deref())
            .raw("error", self.error.as_deref())
            .time("finished_at", self.finished_at)
    }
}

impl Tried {
    fn write<'a, 'b>(&self, json: &'a mut Object<'b>) -> &'a mut Object<'b> {
        json.text("name", &self.name)
            .text("key", &self.key)
            .flag("undo", self.undo)
            .number("attempt", self.attempt)
            .word("outcome", self.outcome)
            .raw("error", self.error.as_deref())
            .time("started_at", Some(self.started_at))
            .time("at", Some(self.at))
    }
}

/// A try that succeeded is told by the event it led to, where one follows.
pub(crate) fn to_json(events: &[Event]) -> String {
    let mut told: Vec<(&Event, Option<&Tried>)> = Vec::with_capacity(events.len());
    let mut before = None;
    for (n, event) in events.iter().enumerate() {
        match event {
            Event::Tried(tried) if events.get(n + 1).is_some_and(|next| next.tells_of(tried)) => {
                before = Some(tried);
            }
            _ => told.push((event, before.take())),
        }
    }
    array(&told, events.iter().map(Event::bytes).sum(), |(event, tried), json| {
        event.write(json);
        if let Some(tried) = tried {
            json.word("outcome", tried.outcome)
                .if_set("undo", tried.undo)
                .time("began_at", Some(tried.started_at));
        }
    })
}

/// `None` for none at all.
pub(crate) fn failures_to_json(failures: &[Tried]) -> Option<String> {
    (!failures.is_empty()).then(|| array(failures, 512, |tried, json| _ = tried.write(json)))
}

/// Signals used up, by name and dedupe key; `None` for none at all.
pub(crate) fn taken_to_json(taken: &[(String, String)]) -> Option<String> {
    let write = |(name, key): &(String, String), json: &mut Object<'_>| {
        json.text("name", name).text("dedupe_key", key);
    };
    (!taken.is_empty()).then(|| array(taken, 128, write))
}

fn array<T>(items: &[T], room: usize, write: impl Fn(&T, &mut Object<'_>)) -> String {
    let mut out = String::with_capacity(room + 2);
    out.push('[');
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        out.push('{');
        write(item, &mut Object { out: &mut out, first: true });
        out.push('}');
    }
    out.push(']');
    out
}

/// A JSON object being written.
struct Object<'a> {
    out: &'a mut String,
    first: bool,
}

impl Object<'_> {
    fn field(&mut self, name: &str) -> &mut String {
        if !std::mem::take(&mut self.first) {
            self.out.push(',');
        }
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        self.out
    }

    /// Text from outside, escaped.
    fn text(&mut self, name: &str, text: &str) -> &mut Self {
        let escaped = serde_json::Value::from(text).to_string();
        self.field(name).push_str(&escaped);
        self
    }

    /// One of our own words, which need no escaping.
    fn word(&mut self, name: &str, word: &str) -> &mut Self {
        let out = self.field(name);
        out.push('"');
        out.push_str(word);
        out.push('"');
        self
    }

    fn number(&mut self, name: &str, number: i32) -> &mut Self {
        self.field(name).push_str(&number.to_string());
        self
    }

    fn flag(&mut self, name: &str, flag: bool) -> &mut Self {
        self.field(name).push_str(if flag { "true" } else { "false" });
        self
    }

    /// A flag that readers take for unset where it is missing.
    fn if_set(&mut self, name: &str, flag: bool) -> &mut Self {
        if flag { self.flag(name, true) } else { self }
    }

    fn raw(&mut self, name: &str, json: Option<&str>) -> &mut Self {
        if let Some(json) = json {
            self.field(name).push_str(json);
        }
        self
    }

    fn time(&mut self, name: &str, time: Option<DateTime<Utc>>) -> &mut Self {
        if let Some(time) = time {
            self.word(name, &time.to_rfc3339_opts(SecondsFormat::Micros, true));
        }
        self
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [b >> 4, b & 15]).map(|d| char::from(DIGITS[usize::from(d)])).collect()
}

/// An event as it is read back for replay. Flat, because raw JSON cannot be read through a tagged enum.
#[derive(Debug, Deserialize)]
pub(crate) struct Stored {
    pub(crate) e: What,
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) pos: Option<i32>,
    pub(crate) op: Option<Op>,
    pub(crate) state: Option<StepState>,
    pub(crate) undoable: Option<bool>,
    pub(crate) attempt: Option<i32>,
    pub(crate) undo_attempt: Option<i32>,
    /// Set when an operator granted new attempts: those before no longer count against the retry rule.
    pub(crate) attempt_base: Option<i32>,
    pub(crate) undo_base: Option<i32>,
    #[serde(default, deserialize_with = "unhex")]
    pub(crate) hash: Vec<u8>,
    #[serde(default, deserialize_with = "as_is")]
    pub(crate) output: Option<Box<RawValue>>,
    pub(crate) deadline_at: Option<DateTime<Utc>>,
    pub(crate) started_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    Intend,
    Settle,
    Tried,
}

/// An output of `null` is an output.
fn as_is<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

fn unhex<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    let byte = |at: usize| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    bytes.ok_or_else(|| serde::de::Error::custom("a hash that is no hex text"))
}
