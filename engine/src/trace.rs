//! Traces: what a run does belongs to the trace of whoever started it, days later and in another process too. Without a
//! collector nothing listens, and this does nothing.

use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::journal::StepId;

/// Makes the span a child of the one that a W3C `traceparent` names.
pub fn continue_trace(span: &Span, traceparent: &str) {
    if let Some(remote) = remote(traceparent) {
        // Refused only when no layer collects traces.
        let _ = span.set_parent(Context::new().with_remote_span_context(remote));
    }
}

/// How others name this span, if anybody collects it.
pub fn traceparent(span: &Span) -> Option<String> {
    let context = span.context();
    let own = context.span().span_context().clone();
    let flags = own.trace_flags().to_u8();
    own.is_valid().then(|| format!("00-{}-{}-{flags:02x}", own.trace_id(), own.span_id()))
}

/// The trace that a `traceparent` is of.
pub fn trace_id(traceparent: &str) -> Option<&str> {
    traceparent.split('-').nth(1)
}

fn remote(traceparent: &str) -> Option<SpanContext> {
    let mut parts = traceparent.split('-').skip(1);
    let trace = TraceId::from_hex(parts.next()?).ok()?;
    let span = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    Some(SpanContext::new(trace, span, TraceFlags::new(flags), true, TraceState::default()))
}

/// One try of a step.
pub(crate) fn step(id: &StepId, attempt: i32, undo: bool) -> Span {
    info_span!("step", otel.name = %id, otel.status_code = tracing::field::Empty, step = %id, attempt, undo)
}

pub(crate) fn failed(span: &Span) {
    span.record("otel.status_code", "ERROR");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_that_a_header_names_is_the_remote_parent() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let remote = remote(header).unwrap();
        assert_eq!(trace_id(header), Some(remote.trace_id().to_string().as_str()));
        assert_eq!(remote.span_id().to_string(), "00f067aa0ba902b7");
        assert!(remote.is_remote() && remote.is_sampled());
    }

    #[test]
    fn a_span_that_nobody_collects_has_no_name() {
        assert_eq!(traceparent(&info_span!("alone")), None);
    }
}
