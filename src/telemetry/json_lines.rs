//! Log lines as flat JSON objects: what the event says, and the fields of every span around it, so that a line deep inside a
//! request, run or task still carries its correlation id at the top.
//!
//! Every request writes one, so values become JSON once, when they are recorded, and a line only puts them together.

use std::fmt;
use std::io::Write;
use std::ops::Range;

use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

pub struct JsonLines<W> {
    writer: W,
}

impl<W> JsonLines<W> {
    pub fn to(writer: W) -> JsonLines<W> {
        JsonLines { writer }
    }
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut said = Fields::default();
        event.record(&mut said);
        let mut line = Line::begin(event, &mut said);
        line.add(&said);
        // From the innermost out: the nearest value of a name counts.
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line.add(fields);
            }
        }
        let _ = self.writer.make_writer_for(event.metadata()).write_all(&line.end());
    }
}

/// Names, and where their values lie as JSON in one text: a text of its own for each would be many small allocations a line.
struct Fields {
    json: Vec<u8>,
    places: Vec<(&'static str, Range<usize>)>,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields { json: Vec::with_capacity(256), places: Vec::with_capacity(12) }
    }
}

impl Fields {
    /// What is said again counts; what was said before stays in the text, unused.
    fn set(&mut self, field: &Field, write: impl FnOnce(&mut Vec<u8>)) {
        // For collectors of traces, not for readers of logs.
        if field.name().starts_with("otel.") {
            return;
        }
        let from = self.json.len();
        write(&mut self.json);
        let place = from..self.json.len();
        match self.places.iter_mut().find(|(name, _)| *name == field.name()) {
            Some(known) => known.1 = place,
            None => self.places.push((field.name(), place)),
        }
    }

    fn values(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.places.iter().map(|(name, place)| (*name, &self.json[place.clone()]))
    }

    /// A record of the `log` crate brings its own target and place along as fields.
    fn take_foreign_target(&mut self) -> Option<Range<usize>> {
        let at = self.places.iter().position(|(name, _)| *name == "log.target")?;
        let target = self.places.swap_remove(at).1;
        self.places.retain(|(name, _)| !name.starts_with("log."));
        Some(target)
    }
}

fn put_json(json: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    let _ = serde_json::to_writer(json, value);
}

/// Most values need no escapes; then what was formatted already is their JSON.
fn put_formatted(json: &mut Vec<u8>, value: fmt::Arguments<'_>) {
    let from = json.len();
    json.push(b'"');
    let _ = json.write_fmt(value);
    if json[from + 1..].iter().all(|byte| *byte >= b' ' && !matches!(byte, b'"' | b'\\')) {
        json.push(b'"');
    } else {
        let raw = json.split_off(from);
        put_json(json, String::from_utf8_lossy(&raw[1..]).as_ref());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, |json| put_formatted(json, format_args!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, |json| put_json(json, value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, |json| put_json(json, &value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, |json| put_json(json, &value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, |json| put_json(json, &value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, |json| put_json(json, &value));
    }
}

/// A line as it is written, and the names that are in it.
struct Line {
    json: Vec<u8>,
    names: Vec<&'static str>,
}

impl Line {
    fn begin(event: &Event<'_>, said: &mut Fields) -> Line {
        let mut time = String::with_capacity(32);
        let _ = SystemTime.format_time(&mut Writer::new(&mut time));
        let mut line = Line { json: Vec::with_capacity(512), names: Vec::with_capacity(24) };
        let _ = write!(line.json, "{{\"timestamp\":\"{time}\",\"level\":\"{}\"", event.metadata().level());
        line.names.extend(["timestamp", "level"]);
        match said.take_foreign_target() {
            Some(target) => line.put("target", &said.json[target]),
            None => {
                line.name("target");
                put_json(&mut line.json, event.metadata().target());
            }
        }
        line
    }

    fn add(&mut self, fields: &Fields) {
        for (name, value) in fields.values() {
            if !self.names.contains(&name) {
                self.put(name, value);
            }
        }
    }

    fn put(&mut self, name: &'static str, value: &[u8]) {
        self.name(name);
        self.json.extend_from_slice(value);
    }

    fn name(&mut self, name: &'static str) {
        self.names.push(name);
        for part in [",\"", name, "\":"] {
            self.json.extend_from_slice(part.as_bytes());
        }
    }

    fn end(mut self) -> Vec<u8> {
        self.json.extend_from_slice(b"}\n");
        self.json
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use serde_json::Value;
    use tracing::field::Empty;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_deep_inside_carries_the_fields_of_every_span_around_it() {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = JsonLines::to(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let _request =
                tracing::info_span!("request", correlation_id = "c-1", otel.kind = "server").entered();
            let step = tracing::info_span!("step", step = "none", project_id = Empty).entered();
            step.record("step", "launch").record("project_id", "p\"1");
            tracing::warn!(attempt = 2, asked = ?"a \"b\"", "again");
        });
        let line: Value = serde_json::from_slice(&kept.0.lock().unwrap()).unwrap();
        let expected = [
            ("correlation_id", "c-1"),
            ("step", "launch"),
            ("project_id", "p\"1"),
            ("asked", r#""a \"b\"""#),
            ("message", "again"),
            ("level", "WARN"),
        ];
        for (name, value) in expected {
            assert_eq!(line[name], value, "{line}");
        }
        assert_eq!(line["attempt"], 2);
        assert!(line.get("otel.kind").is_none());
    }

    #[test]
    fn a_name_appears_once_and_the_nearest_value_counts() {
        let kept = Kept::default();
        let writer = kept.clone();
        let layer = JsonLines::to(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let _run = tracing::info_span!("run", correlation_id = "run", status = "running").entered();
            let _call = tracing::info_span!("call", correlation_id = "call").entered();
            tracing::info!(status = 200, "answered");
        });
        let line = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        for name in ["correlation_id", "status"] {
            assert_eq!(line.matches(&format!("{name:?}:")).count(), 1, "{line}");
        }
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["correlation_id"], &line["status"]), (&Value::from("call"), &Value::from(200)));
    }
}
