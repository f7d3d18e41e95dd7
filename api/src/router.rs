//! The table of contents: every route, and beside it the permission key it asks for.
//!
//! Layers, from the outside in: the edge (ids, log, metrics, error shape), a deadline, panics, the body limit.

use std::any::Any;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get as plain_get};
use axum::{Router, middleware};
use domain::Permission::{self, WorkflowsOperate, WorkflowsRead};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::TimeoutLayer;

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::state::State;
use crate::{body, edge, health, metrics, openapi, schedules, wait, workflows};

pub(crate) const PROJECT: &str = "/api/v1/projects/{project_id}";
pub(crate) const ADMIN: &str = "/api/v1/admin";

/// The longest a request may take to begin its answer: the longest `?wait=` and some time to work.
const DEADLINE: Duration = wait::LONGEST.saturating_add(Duration::from_secs(15));

#[rustfmt::skip]
pub(crate) fn routes() -> Vec<Route> {
    vec![
        get (PROJECT, "/workflows",                WorkflowsRead,    workflows::list()),
        get (PROJECT, "/workflows/{id}",           WorkflowsRead,    workflows::show()),
        post(PROJECT, "/workflows/{id}/retry",     WorkflowsOperate, workflows::retry()),
        post(PROJECT, "/workflows/{id}/resume",    WorkflowsOperate, workflows::resume()),
        post(PROJECT, "/workflows/{id}/pause",     WorkflowsOperate, workflows::pause()),
        post(PROJECT, "/workflows/{id}/cancel",    WorkflowsOperate, workflows::cancel()),
        get (PROJECT, "/workflows/{id}/stream",    WorkflowsRead,    workflows::stream()),

        get (ADMIN,   "/workflows",                WorkflowsRead,    workflows::list()),
        get (ADMIN,   "/workflows/stuck",          WorkflowsRead,    workflows::stuck()),
        post(ADMIN,   "/workflows/bulk-retry",     WorkflowsOperate, workflows::bulk_retry()),
        get (ADMIN,   "/workflows/{id}",           WorkflowsRead,    workflows::show()),
        post(ADMIN,   "/workflows/{id}/retry",     WorkflowsOperate, workflows::retry()),
        post(ADMIN,   "/workflows/{id}/resume",    WorkflowsOperate, workflows::resume()),
        post(ADMIN,   "/workflows/{id}/pause",     WorkflowsOperate, workflows::pause()),
        post(ADMIN,   "/workflows/{id}/cancel",    WorkflowsOperate, workflows::cancel()),
        get (ADMIN,   "/workflows/{id}/stream",    WorkflowsRead,    workflows::stream()),

        get (ADMIN,   "/schedules",                WorkflowsRead,    schedules::list()),
        post(ADMIN,   "/schedules/{name}/run",     WorkflowsOperate, schedules::run()),
        post(ADMIN,   "/schedules/{name}/pause",   WorkflowsOperate, schedules::pause()),
        post(ADMIN,   "/schedules/{name}/resume",  WorkflowsOperate, schedules::resume()),
    ]
}

/// Everything the server answers.
pub fn router(state: State) -> Router {
    let mut router = Router::new()
        .route("/livez", plain_get(health::livez))
        .route("/readyz", plain_get(health::readyz))
        .route("/version", plain_get(health::version))
        .route("/metrics", plain_get(metrics::scrape))
        .route("/api/v1/openapi.json", plain_get(openapi::serve));
    for route in routes() {
        router = router.route(&route.path, route.endpoint.mount(route.filter()));
    }
    layered(router, state)
}

fn layered(router: Router<State>, state: State) -> Router {
    router
        .layer(DefaultBodyLimit::max(body::MAX_BYTES))
        .layer(CatchPanicLayer::custom(after_panic))
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, DEADLINE))
        .layer(middleware::from_fn_with_state(state.clone(), edge::edge))
        .with_state(state)
}

pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The key a caller must hold: in the project of the path, or on the platform under `/admin`.
    pub(crate) permission: Permission,
    pub(crate) endpoint: Endpoint,
}

impl Route {
    fn filter(&self) -> MethodFilter {
        if self.method == Method::GET { MethodFilter::GET } else { MethodFilter::POST }
    }
}

fn get(scope: &str, path: &str, permission: Permission, endpoint: Endpoint) -> Route {
    Route { method: Method::GET, path: format!("{scope}{path}"), permission, endpoint }
}

fn post(scope: &str, path: &str, permission: Permission, endpoint: Endpoint) -> Route {
    Route { method: Method::POST, path: format!("{scope}{path}"), permission, endpoint }
}

/// A panic costs its own request only; what it said goes to the log.
fn after_panic(panic: Box<dyn Any + Send>) -> Response {
    let said =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    ApiError::internal(&format_args!("panic: {}", said.unwrap_or("without words"))).into_response()
}

#[cfg(test)]
mod tests;
