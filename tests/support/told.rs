//! Everything that a story logs and traces, down to the last detail. Every story is a process of its own, so nobody else
//! speaks.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

#[derive(Clone, Debug, Default)]
pub struct Told {
    lines: Arc<Mutex<Vec<u8>>>,
    spans: Arc<Mutex<Vec<SpanData>>>,
}

impl Told {
    pub fn from_now_on(level: LevelFilter) -> Told {
        let told = Told::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(told.clone()).build();
        let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("story"));
        let lines = fmt::layer().with_writer(told.clone()).with_ansi(false);
        let both = lines.with_filter(level).and_then(spans.with_filter(level));
        Registry::default().with(both).try_init().expect("nobody listens yet");
        told
    }

    pub fn lines(&self) -> String {
        String::from_utf8_lossy(&self.lines.lock().unwrap()).into_owned()
    }

    /// Those that have ended.
    pub fn spans(&self) -> Vec<SpanData> {
        self.spans.lock().unwrap().clone()
    }

    /// Names, attributes and events of all spans.
    pub fn traces(&self) -> String {
        let mut text = String::new();
        for span in self.spans() {
            writeln!(text, "{} {:?} {:?} {:?}", span.name, span.attributes, span.events, span.status)
                .unwrap();
        }
        text
    }
}

impl SpanExporter for Told {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.spans.lock().unwrap().extend(batch);
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Told {
    type Writer = Told;

    fn make_writer(&'a self) -> Told {
        self.clone()
    }
}

impl io::Write for Told {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lines.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
