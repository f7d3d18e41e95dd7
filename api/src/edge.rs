//! What is true of every request: it has a correlation id that is echoed and logged, it is counted and timed, and
//! whatever goes wrong, the answer has the one error shape.

use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use api_types::{ErrorEnvelope, Problem};
use axum::extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State as Shared};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::event::Thread;
use domain::{CorrelationId, ErrorCode, TraceParent};
use engine::trace;
use store::audit::NewEntry;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::error::ApiError;
use crate::json::Json;
use crate::state::State;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CORRELATION_ID: HeaderName = HeaderName::from_static("x-correlation-id");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const PROBLEM_JSON: &str = "application/problem+json";
/// As much of a `User-Agent` as the audit log keeps.
const USER_AGENT_LENGTH: usize = 256;

/// What ties together everything a request sets off, and where the request came from. Everything about a request holds on to
/// it.
#[derive(Clone, Debug)]
pub(crate) struct Context(Arc<Origin>);

#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) correlation_id: CorrelationId,
    /// What everything it sets off continues: the request's own span where somebody collects it, else the caller's.
    traceparent: Option<String>,
    /// The other end of the connection, or where our own proxies say that it is.
    pub(crate) ip: Option<IpAddr>,
    user_agent: Option<HeaderValue>,
}

impl Deref for Context {
    type Target = Origin;

    fn deref(&self) -> &Origin {
        &self.0
    }
}

impl Origin {
    pub(crate) fn traceparent(&self) -> Option<String> {
        self.traceparent.clone()
    }

    /// What every event that it sets off belongs to.
    pub(crate) fn thread(&self) -> Thread<'_> {
        Thread { correlation_id: self.correlation_id.as_str(), traceparent: self.traceparent.as_deref() }
    }

    fn seen_in(mut self, span: &Span) -> Origin {
        self.traceparent = trace::traceparent(span).or(self.traceparent);
        if let Some(trace_id) = self.traceparent.as_deref().and_then(trace::trace_id) {
            span.record("trace_id", trace_id);
        }
        self
    }

    fn user_agent(&self) -> Option<String> {
        let told = self.user_agent.as_ref()?.to_str().ok()?;
        Some(told.chars().take(USER_AGENT_LENGTH).collect())
    }

    /// The beginning of an audit entry, before it is known who acts.
    pub(crate) fn entry(&self) -> NewEntry {
        NewEntry {
            correlation_id: self.correlation_id.to_string(),
            ip: self.ip.map(|ip| ip.to_string()),
            user_agent: self.user_agent(),
            ..NewEntry::default()
        }
    }
}

/// On an answer whose error has a form of its own, which other protocols prescribe.
#[derive(Clone, Copy)]
pub(crate) struct OwnShape;

/// For routes of other protocols: their errors stay as they are.
pub(crate) async fn keep_shape(mut answer: Response) -> Response {
    answer.extensions_mut().insert(OwnShape);
    answer
}

impl<S: Sync> FromRequestParts<S> for Context {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Context, ApiError> {
        parts
            .extensions
            .get::<Context>()
            .cloned()
            .ok_or_else(|| ApiError::internal(&"a route without the edge"))
    }
}

/// The outermost layer.
pub(crate) async fn edge(Shared(state): Shared<State>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (origin, refusal) = identify(&request, state.proxies);
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map(MatchedPath::as_str);
    let span = span(&request, route, &origin);
    let context = Context(Arc::new(origin.seen_in(&span)));
    let method = request.method().clone();
    let wants_problem = accepts_problem(request.headers());
    request.extensions_mut().insert(context.clone());

    let answer = match refusal {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).instrument(span.clone()).await,
    };
    let mut answer = in_one_shape(answer, &context, wants_problem);
    echo(answer.headers_mut(), &context.correlation_id);
    let took = began.elapsed();
    state.metrics.request(&method, route, answer.status(), took);
    span.in_scope(|| log(answer.status(), route, took.as_micros() as f64 / 1e3));
    answer
}

/// A caller may name its request; a name that breaks the rules is refused rather than silently replaced.
fn identify(request: &Request, proxies: usize) -> (Origin, Option<ApiError>) {
    let headers = request.headers();
    let text = |name: HeaderName| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let mut named = headers.get_all(REQUEST_ID).iter();
    let (given, extra) = (named.next(), named.next());
    let chosen = given.map(|value| value.to_str().ok().and_then(|text| text.parse::<CorrelationId>().ok()));
    let (correlation_id, refusal) = match (chosen, extra) {
        (None, _) => (CorrelationId::generate(), None),
        (Some(Some(chosen)), None) => (chosen, None),
        (Some(_), _) => {
            let rule = "X-Request-ID must appear once, with 1 to 128 characters of [A-Za-z0-9._:-].";
            (CorrelationId::generate(), Some(ApiError::new(ErrorCode::InvalidRequest, rule)))
        }
    };
    let origin = Origin {
        correlation_id,
        traceparent: text(TRACE_PARENT).and_then(TraceParent::from_header).map(|told| told.to_string()),
        ip: address(request, proxies),
        user_agent: headers.get(header::USER_AGENT).cloned(),
    };
    (origin, refusal)
}

/// Each proxy adds the address it was spoken to from; what stands further to the left, the caller may have made up.
fn address(request: &Request, proxies: usize) -> Option<IpAddr> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip());
    let told =
        request.headers().get_all("x-forwarded-for").iter().rev().filter_map(|value| value.to_str().ok());
    let mut told = told.flat_map(|value| value.rsplit(',')).map(str::trim);
    let ours = proxies.checked_sub(1).and_then(|further| told.nth(further));
    ours.and_then(|address| address.parse().ok()).or(peer)
}

/// The fields that later code fills in (`Span::record`) must be named here.
fn span(request: &Request, route: Option<&str>, origin: &Origin) -> Span {
    let (method, route) = (request.method(), route.unwrap_or("unmatched"));
    let span = tracing::info_span!(
        "request",
        otel.name = %format_args!("{method} {route}"),
        otel.kind = "server",
        %method,
        route,
        correlation_id = %origin.correlation_id,
        trace_id = Empty,
        org_id = Empty,
        project_id = Empty,
        app_instance_id = Empty,
        operating_mode = Empty,
        control_plane_scope = Empty,
        runtime_backend = Empty,
    );
    if let Some(parent) = &origin.traceparent {
        trace::continue_trace(&span, parent);
    }
    span
}

/// Probes and scrapes come every few seconds and say nothing; they are logged only when they fail.
fn log(status: StatusCode, route: Option<&str>, took_ms: f64) {
    let status = status.as_u16();
    match route {
        Some("/livez" | "/readyz" | "/metrics") if status < 400 => {
            tracing::debug!(status, took_ms, "answered")
        }
        _ => tracing::info!(status, took_ms, "answered"),
    }
}

fn echo(headers: &mut HeaderMap, id: &CorrelationId) {
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        headers.insert(REQUEST_ID, value.clone());
        headers.insert(CORRELATION_ID, value);
    }
}

fn accepts_problem(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT);
    accepted.iter().filter_map(|value| value.to_str().ok()).any(|value| value.contains(PROBLEM_JSON))
}

/// Errors of handlers bring their `ApiError`; those of the framework (unknown path or method, a deadline) only a
/// status, from which the code follows.
fn in_one_shape(mut answer: Response, context: &Context, wants_problem: bool) -> Response {
    let status = answer.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || answer.extensions().get::<OwnShape>().is_some() {
        return answer;
    }
    let error = answer.extensions_mut().remove::<ApiError>().unwrap_or_else(|| of_status(status));
    let envelope = ErrorEnvelope {
        code: error.code,
        message: error.message,
        correlation_id: context.correlation_id.to_string(),
        details: error.details,
    };
    let (media_type, body) = if wants_problem {
        (PROBLEM_JSON, Json(Problem::from(envelope)).into_response())
    } else {
        ("application/json", Json(envelope).into_response())
    };
    let (mut head, _) = answer.into_parts();
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    if status == StatusCode::UNAUTHORIZED {
        head.headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(seconds) = error.retry_after {
        head.headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    Response::from_parts(head, body.into_body())
}

fn of_status(status: StatusCode) -> ApiError {
    match status {
        StatusCode::NOT_FOUND => ApiError::plain(ErrorCode::RouteNotFound),
        StatusCode::METHOD_NOT_ALLOWED => ApiError::plain(ErrorCode::MethodNotAllowed),
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::plain(ErrorCode::PayloadTooLarge),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ApiError::plain(ErrorCode::UnsupportedMediaType),
        StatusCode::SERVICE_UNAVAILABLE => ApiError::unavailable("The request took too long."),
        status if status.is_client_error() => ApiError::plain(ErrorCode::InvalidRequest),
        status => ApiError::internal(&format_args!("a bare status {status}")),
    }
}
