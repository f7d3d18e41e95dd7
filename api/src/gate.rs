//! The gate before every route: who is it, how often have they asked, may they do this here? The answers come in the
//! order of the contract: 401, 429, a project that is not theirs, a platform that is not theirs, a missing key.
//!
//! Every refusal of somebody we know is written to the audit log, also those a handler makes later; of those whom nobody
//! knows, as many as `strangers.rs` lets through.

use axum::extract::{MatchedPath, RawPathParams, Request, State as Shared};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use domain::{ActorType, ErrorCode, Refusal, Scope, authorize};
use store::audit::{self, NewEntry};
use tracing::Span;
use uuid::Uuid;

use crate::access::Access;
use crate::caller::Caller;
use crate::edge::Context;
use crate::error::ApiError;
use crate::mutation::Leftover;
use crate::path;
use crate::state::State;
use crate::strangers::{self, Crowd};

/// What the path of a route is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Project,
    Organization,
    Platform,
    /// Nothing in particular, such as the caller itself.
    Nowhere,
}

#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) state: State,
    pub(crate) access: Access,
    pub(crate) place: Place,
    pub(crate) operation: &'static str,
    pub(crate) crowd: Crowd,
}

pub(crate) async fn gate(
    Shared(gate): Shared<Gate>,
    params: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(context) = request.extensions().get::<Context>().cloned() else {
        return ApiError::internal(&"a route without the edge").into_response();
    };
    let standing =
        match gate.state.identity.of(&gate.state, request.method(), request.headers(), &context).await {
            Ok(standing) => standing,
            Err(refusal) => {
                let path = request.uri().path().to_owned();
                let route = request.extensions().get::<MatchedPath>().cloned();
                drop(request);
                return Box::pin(gate.turn_away(path, route.as_ref(), &context, refusal)).await;
            }
        };
    let allowance = gate.state.limiter.take(standing.principal.id, standing.requests_per_minute);
    // Until the place is known, everything is as if it happened on the platform.
    let (demand, operation) = (gate.access.demand(), gate.operation);
    let mut caller = Caller { standing, scope: Scope::Platform, demand, operation, context };
    let uri = request.uri().clone();
    let mut answer = if allowance.exceeded {
        let limit = caller.standing.requests_per_minute;
        ApiError::new(ErrorCode::RateLimited, format!("More than {limit} requests within a minute."))
            .retry_after(allowance.resets_in)
            .into_response()
    } else {
        match gate.admit(&mut caller, &params, request.headers()).await {
            Ok(()) => {
                let leftover = Leftover::default();
                request.extensions_mut().insert(caller.clone());
                request.extensions_mut().insert(leftover.clone());
                let answer = next.run(request).await;
                leftover.end().await;
                answer
            }
            Err(refusal) => refusal.into_response(),
        }
    };
    if let Some(code) = denial(&answer) {
        Box::pin(gate.record(caller.entry(), uri.path().to_owned(), code)).await;
    }
    allowance.tell("api", answer.headers_mut());
    answer
}

impl Gate {
    /// Nobody we know, or somebody who may not sign in any more.
    async fn turn_away(
        &self,
        path: String,
        route: Option<&MatchedPath>,
        context: &Context,
        refusal: ApiError,
    ) -> Response {
        if refusal.code.status() != 401 {
            return refusal.into_response();
        }
        let allowance = self.state.strangers.count(self.crowd, context);
        let (code, known) = (refusal.code, refusal.subject);
        let mut answer = match allowance.filter(|allowance| allowance.exceeded) {
            Some(exceeded) => self.state.strangers.too_many(exceeded).into_response(),
            None => refusal.into_response(),
        };
        if let Some((actor_type, id)) = known {
            let entry = NewEntry {
                actor_id: Some(id),
                actor_type: Some(actor_type.as_str()),
                action: self.operation.to_owned(),
                ..context.entry()
            };
            self.record(entry, path, code).await;
        } else {
            strangers::note(&self.state, context, self.operation, route, code);
        }
        if let Some(allowance) = allowance {
            strangers::tell(allowance, answer.headers_mut());
        }
        answer
    }

    /// Finds the place and decides.
    async fn admit(
        &self,
        caller: &mut Caller,
        params: &RawPathParams,
        headers: &HeaderMap,
    ) -> Result<(), ApiError> {
        if let Some(scope) = self.scope(params).await? {
            caller.scope = scope;
        } else {
            return Err(ApiError::plain(self.invisible()));
        }
        if self.access == Access::Node && !is_this_node(caller, params) {
            return Err(ApiError::plain(ErrorCode::InsufficientPermissions));
        }
        let itself = self.admits_instances() && is_this_instance(caller, params);
        if self.access == Access::Instance && !itself {
            let hidden = caller.keys().is_empty();
            let code = if hidden { self.invisible() } else { ErrorCode::InsufficientPermissions };
            return Err(ApiError::plain(code));
        }
        if let Some(demand) = self.access.demand().filter(|_| !itself) {
            authorize(caller.principal(), demand, caller.scope).map_err(|refusal| match refusal {
                Refusal::Invisible => ApiError::plain(self.invisible()),
                Refusal::AdminRequired => ApiError::plain(ErrorCode::AdminRequired),
                Refusal::InsufficientPermissions => ApiError::plain(ErrorCode::InsufficientPermissions)
                    .with("permission", demand.key.as_str()),
            })?;
        }
        if let Access::Somewhere(key) = self.access
            && !caller.principal().holds_somewhere(key)
        {
            let refusal = ApiError::plain(ErrorCode::InsufficientPermissions);
            return Err(refusal.with("permission", key.as_str()));
        }
        agree_on_project(headers, caller.scope)?;
        record_place(caller.scope);
        Ok(())
    }

    async fn scope(&self, params: &RawPathParams) -> Result<Option<Scope>, ApiError> {
        let named = |name| path::value(params, name).and_then(|text| text.parse::<Uuid>().ok());
        match self.place {
            Place::Platform | Place::Nowhere => Ok(Some(Scope::Platform)),
            Place::Project => match named("project_id") {
                Some(project) => self.state.places.project(&self.state, project).await,
                None => Ok(None),
            },
            Place::Organization => match named("org_id") {
                Some(org) => self.state.places.organization(&self.state, org).await,
                None => Ok(None),
            },
        }
    }

    fn admits_instances(&self) -> bool {
        matches!(self.access, Access::Instance | Access::KeyOrInstance(_))
    }

    fn invisible(&self) -> ErrorCode {
        match self.place {
            Place::Organization => ErrorCode::OrganizationNotFound,
            _ => ErrorCode::ProjectNotFound,
        }
    }

    /// In a transaction of its own, since the refused request has none. A log that cannot be written must not turn a
    /// refusal into something else.
    async fn record(&self, begun: NewEntry, target: String, code: ErrorCode) {
        let entry = NewEntry { target, code: Some(code.as_str()), ..begun };
        let written = async {
            let mut tx = self.state.write().await?;
            audit::insert(&mut tx, &entry).await?;
            tx.commit().await
        };
        if let Err(error) = written.await {
            tracing::error!(%error, action = self.operation, "a denial could not be written to the audit log");
        }
    }
}

/// Denials are the 403s, a place that is kept from the caller, and what says of itself that it is one.
fn denial(answer: &Response) -> Option<ErrorCode> {
    let error = answer.extensions().get::<ApiError>()?;
    let kept = matches!(error.code, ErrorCode::ProjectNotFound | ErrorCode::OrganizationNotFound);
    (error.code.status() == 403 || kept || error.denial).then_some(error.code)
}

/// A node speaks for itself alone.
fn is_this_node(caller: &Caller, params: &RawPathParams) -> bool {
    let named = path::value(params, "id").and_then(|text| text.parse::<Uuid>().ok());
    caller.principal().actor_type == ActorType::Node && named == Some(caller.principal().id)
}

/// An instance speaks of itself alone, in its own project.
fn is_this_instance(caller: &Caller, params: &RawPathParams) -> bool {
    let at_home = caller.principal().role_in(caller.scope).is_some();
    let named = path::value(params, "id").map(str::parse::<Uuid>);
    caller.standing.instance.is_some_and(|own| at_home && named.is_none_or(|named| named == Ok(own)))
}

fn agree_on_project(headers: &HeaderMap, scope: Scope) -> Result<(), ApiError> {
    let (Some(named), Some(project)) = (headers.get("x-project-id"), scope.project()) else { return Ok(()) };
    let named = named.to_str().ok().and_then(|text| text.parse::<Uuid>().ok());
    if named == Some(project) {
        return Ok(());
    }
    Err(ApiError::new(ErrorCode::InvalidRequest, "X-Project-ID differs from the project in the path."))
}

fn record_place(scope: Scope) {
    let span = Span::current();
    if let Some(org) = scope.org() {
        span.record("org_id", tracing::field::display(org));
    }
    if let Some(project) = scope.project() {
        span.record("project_id", tracing::field::display(project));
    }
}
