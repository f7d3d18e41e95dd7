//! Log lines as flat JSON objects: what the event says, and the fields of every span around it, so that a line deep inside a
//! request, run or task still carries its correlation id at the top.
//!
//! Every request writes one, so values become JSON once, when they are recorded, and a line only puts them together.

use std::fmt;
use std::io::Write;

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
        let _ = self.writer.make_writer_for(event.metadata()).write_all(line.end().as_bytes());
    }
}

/// Names and their values as JSON.
#[derive(Default)]
struct Fields(Vec<(&'static str, String)>);

impl Fields {
    fn set(&mut self, field: &Field, value: &(impl Serialize + ?Sized)) {
        let value = serde_json::to_string(value).unwrap_or_default();
        match self.0.iter_mut().find(|(name, _)| *name == field.name()) {
            Some(known) => known.1 = value,
            None => self.0.push((field.name(), value)),
        }
    }

    /// A record of the `log` crate brings its own target and place along as fields.
    fn take_foreign_target(&mut self) -> Option<String> {
        let at = self.0.iter().position(|(name, _)| *name == "log.target")?;
        let target = self.0.swap_remove(at).1;
        self.0.retain(|(name, _)| !name.starts_with("log."));
        Some(target)
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // For collectors of traces, not for readers of logs.
        if !field.name().starts_with("otel.") {
            self.set(field, &format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if !field.name().starts_with("otel.") {
            self.set(field, value);
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, &value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, &value);
    }
}

/// A line as it is written, and the names that are in it.
struct Line {
    text: String,
    names: Vec<&'static str>,
}

impl Line {
    fn begin(event: &Event<'_>, said: &mut Fields) -> Line {
        let mut line = Line { text: String::with_capacity(512), names: vec!["timestamp"] };
        line.text.push_str("{\"timestamp\":\"");
        let _ = SystemTime.format_time(&mut Writer::new(&mut line.text));
        line.text.push('"');
        line.put("level", &format!("\"{}\"", event.metadata().level()));
        let own = || serde_json::to_string(event.metadata().target()).unwrap_or_default();
        line.put("target", &said.take_foreign_target().unwrap_or_else(own));
        line
    }

    fn add(&mut self, fields: &Fields) {
        for (name, value) in &fields.0 {
            if !self.names.contains(name) {
                self.put(name, value);
            }
        }
    }

    fn put(&mut self, name: &'static str, value: &str) {
        self.names.push(name);
        for part in [",\"", name, "\":", value] {
            self.text.push_str(part);
        }
    }

    fn end(mut self) -> String {
        self.text.push_str("}\n");
        self.text
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
            tracing::warn!(attempt = 2, "again");
        });
        let line: Value = serde_json::from_slice(&kept.0.lock().unwrap()).unwrap();
        let expected = [
            ("correlation_id", "c-1"),
            ("step", "launch"),
            ("project_id", "p\"1"),
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
