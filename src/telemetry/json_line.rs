//! One log line as one flat JSON object: what the event says, and the fields of every span around it, so that a line
//! deep inside a request, run or task still carries its correlation id at the top.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, Scope};

pub struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let mut line = Line::default();
        line.0.insert("timestamp".into(), timestamp.into());
        line.0.insert("level".into(), event.metadata().level().as_str().into());
        line.0.insert("target".into(), event.metadata().target().into());
        for span in context.event_scope().into_iter().flat_map(Scope::from_root) {
            let extensions = span.extensions();
            let fields =
                extensions.get::<FormattedFields<N>>().map(|fields| fields.as_str()).unwrap_or_default();
            if let Ok(fields) = serde_json::from_str::<Map<String, Value>>(fields) {
                line.0.extend(fields.into_iter().filter(|(name, _)| !name.starts_with("otel.")));
            }
        }
        event.record(&mut line);
        line.take_foreign_target();
        writeln!(writer, "{}", Value::Object(line.0))
    }
}

#[derive(Default)]
struct Line(Map<String, Value>);

impl Line {
    /// A record of the `log` crate brings its own target and place along as fields.
    fn take_foreign_target(&mut self) {
        if let Some(target) = self.0.remove("log.target") {
            self.0.insert("target".into(), target);
            self.0.retain(|name, _| !name.starts_with("log."));
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().into(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().into(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::format::JsonFields;
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
        let layer = tracing_subscriber::fmt::layer()
            .event_format(JsonLine)
            .fmt_fields(JsonFields::new())
            .with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let _request =
                tracing::info_span!("request", correlation_id = "c-1", otel.kind = "server").entered();
            let _step = tracing::info_span!("step", step = "launch").entered();
            tracing::warn!(attempt = 2, "again");
        });
        let line: Value = serde_json::from_slice(&kept.0.lock().unwrap()).unwrap();
        let expected =
            [("correlation_id", "c-1"), ("step", "launch"), ("message", "again"), ("level", "WARN")];
        for (name, value) in expected {
            assert_eq!(line[name], value, "{line}");
        }
        assert_eq!(line["attempt"], 2);
        assert!(line.get("otel.kind").is_none());
    }
}
