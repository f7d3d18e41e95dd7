//! Continuing the caller's trace: the request's span becomes a child of the span named in `traceparent`. Without a
//! collector configured nothing listens, and this does nothing.

use domain::TraceParent;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

pub(crate) fn continue_trace(span: &Span, parent: &TraceParent) {
    if let Some(remote) = remote(parent) {
        // Refused only when no layer collects traces.
        let _ = span.set_parent(Context::new().with_remote_span_context(remote));
    }
}

fn remote(parent: &TraceParent) -> Option<SpanContext> {
    let trace = TraceId::from_hex(parent.trace_id()).ok()?;
    let span = SpanId::from_hex(parent.parent_id()).ok()?;
    Some(SpanContext::new(trace, span, TraceFlags::new(parent.flags()), true, TraceState::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_span_is_the_remote_parent() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let remote = remote(&TraceParent::from_header(header).unwrap()).unwrap();
        assert_eq!(remote.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(remote.span_id().to_string(), "00f067aa0ba902b7");
        assert!(remote.is_remote() && remote.is_sampled());
    }
}
