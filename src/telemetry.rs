//! Logs and traces. Logs go to stderr, as JSON or for people; traces go to an OTLP/HTTP collector when one is
//! configured. Whoever starts this keeps the guard until the end, so that the last lines are written and the last spans sent.

mod json_lines;
mod scribe;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use self::json_lines::JsonLines;
use self::scribe::Scribe;
use crate::config::{Log, LogFormat, Telemetry};
use crate::failure::Failure;

/// Sends and writes what is still buffered when dropped: the lines last, so that what goes wrong with the spans is told.
pub struct Guard {
    traces: Option<SdkTracerProvider>,
    _lines: scribe::Closing,
}

pub fn start(log: &Log, telemetry: &Telemetry) -> Result<Guard, Failure> {
    let traces =
        telemetry.otlp_endpoint.as_deref().map(|endpoint| exporter(endpoint, telemetry)).transpose()?;
    let spans = traces.as_ref().map(|provider| {
        tracing_opentelemetry::layer().with_tracer(provider.tracer("gpuaas")).with_filter(log.filter.clone())
    });
    let unable = |error: &dyn std::fmt::Display| Failure::server(format!("cannot start logging: {error}"));
    let (scribe, closing) = Scribe::start(std::io::stderr()).map_err(|error| unable(&error))?;
    Registry::default().with(lines(log, scribe)).with(spans).try_init().map_err(|error| unable(&error))?;
    Ok(Guard { traces, _lines: closing })
}

fn lines(log: &Log, scribe: Scribe) -> Box<dyn Layer<Registry> + Send + Sync> {
    let filter = log.filter.clone();
    match log.format {
        LogFormat::Text => fmt::layer().with_writer(scribe).with_ansi(log.color).with_filter(filter).boxed(),
        LogFormat::Json => JsonLines::to(scribe).with_filter(filter).boxed(),
    }
}

fn exporter(endpoint: &str, telemetry: &Telemetry) -> Result<SdkTracerProvider, Failure> {
    // An error says that a provider is installed already: there is only one we compile.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let address = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(address)
        .build()
        .map_err(|error| Failure::usage(format!("`telemetry.otlp_endpoint`: {error}")))?;
    let resource = Resource::builder().with_service_name(telemetry.service_name.clone()).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(traces) = self.traces.take()
            && let Err(error) = traces.shutdown()
        {
            tracing::warn!(%error, "the last traces were not sent");
        }
    }
}
