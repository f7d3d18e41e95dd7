//! Logs and traces. Logs go to stderr, as JSON or for people; traces go to an OTLP/HTTP collector when one is
//! configured. Whoever starts this keeps the guard until the end, so that the last spans are sent.

mod json_lines;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use self::json_lines::JsonLines;
use crate::config::{Log, LogFormat, Telemetry};
use crate::failure::Failure;

/// Sends what is still buffered when dropped.
pub struct Guard {
    traces: Option<SdkTracerProvider>,
}

pub fn start(log: &Log, telemetry: &Telemetry) -> Result<Guard, Failure> {
    let traces =
        telemetry.otlp_endpoint.as_deref().map(|endpoint| exporter(endpoint, telemetry)).transpose()?;
    let spans = traces.as_ref().map(|provider| {
        tracing_opentelemetry::layer().with_tracer(provider.tracer("gpuaas")).with_filter(log.filter.clone())
    });
    Registry::default()
        .with(lines(log))
        .with(spans)
        .try_init()
        .map_err(|error| Failure::server(format!("cannot start logging: {error}")))?;
    Ok(Guard { traces })
}

fn lines(log: &Log) -> Box<dyn Layer<Registry> + Send + Sync> {
    let filter = log.filter.clone();
    match log.format {
        LogFormat::Text => {
            fmt::layer().with_writer(std::io::stderr).with_ansi(log.color).with_filter(filter).boxed()
        }
        LogFormat::Json => JsonLines::to(std::io::stderr).with_filter(filter).boxed(),
    }
}

fn exporter(endpoint: &str, telemetry: &Telemetry) -> Result<SdkTracerProvider, Failure> {
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
