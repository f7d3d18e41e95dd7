//! The table of contents: every route, and beside it what it asks of its caller.
//!
//! Layers, from the outside in: the edge (ids, log, metrics, error shape), a deadline, panics, the limits of a body, and at
//! each route its gate.

use std::any::Any;
use std::time::Duration;

use crate::webhooks;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, get as plain_get};
use axum::{Extension, Router, middleware};
use domain::Permission::WebhooksManage;
use domain::Permission::{
    AllocationsManage, AllocationsRead, AppsArtifactPublish, AppsArtifactRead, AppsArtifactRevoke,
    AppsCatalogRead, AppsEntitlementManage, AppsEntitlementRead, AppsInstanceCreate, AppsInstanceRead,
    AppsManifestSubmit, AppsVersionManage, AuditRead, BillingBudgetManage, BillingPriceManage,
    BillingUsageRead, BillingUsageWrite, EventsRead, IamCredentialManage, IamCredentialRead, IamMemberManage,
    IamServiceAccountManage, IamServiceAccountRead, NodesManage, WorkflowsOperate, WorkflowsRead,
};
use store::app_artifacts::AppArtifact;
use store::app_instances::AppInstance;
use store::app_versions::AppVersion;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::TimeoutLayer;

use crate::access::Access::{self, Instance, KeyOrInstance, Node, Person, Public, SignedIn, Somewhere};
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::gate::{Gate, Place, gate};
use crate::state::State;
use crate::strangers::{self, Crowd, Door};
use crate::{
    access_credentials, action, allocations, app_instances, artifacts, asyncapi, audit, auth, billing, body,
    catalog, console, edge, entitlements, events, federated_trusts, health, leftovers, manifest_check,
    manifests, me, members, metrics, node_agent, nodes, openapi, organizations, platform_releases, policies,
    prices, projects, registry, roles, schedules, service_accounts, signing_keys, submissions, traces,
    uploads, wait, workflows, wrapping,
};

pub(crate) const ROOT: &str = "/api/v1";
pub(crate) const PROJECT: &str = "/api/v1/projects/{project_id}";
pub(crate) const ORGANIZATION: &str = "/api/v1/organizations/{org_id}";
pub(crate) const ADMIN: &str = "/api/v1/admin";
/// Routes of other protocols, at the paths that those prescribe; each brings its own proof.
const OUTSIDE: &str = "";
/// Where nodes speak to the platform; nobody else does.
const NODES: &str = "/internal/v1/nodes";

/// The longest a request may take to begin its answer: the longest `?wait=` and some time to work.
const DEADLINE: Duration = wait::LONGEST.saturating_add(Duration::from_secs(15));

/// The list of keys has none for organizations, projects and policies: whoever places allocations must see for whom, and
/// whoever decides on people decides on what they belong to.
#[rustfmt::skip]
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = vec![
        get   (ROOT,         "/me",                                SignedIn,                me::show()),
        post  (ROOT,         "/auth/service-account/token",        Public,                  auth::service_account_token()),
        post  (ROOT,         "/auth/token-exchange",               Public,                  auth::token_exchange()),

        get   (ROOT,         "/apps/manifest-schema",              Public,                  manifest_check::get_schema()),
        post  (ROOT,         "/apps/manifests/validate",           SignedIn,                manifest_check::validate()),

        get   (ADMIN,        "/organizations",                     AllocationsRead,         organizations::list()),
        post  (ADMIN,        "/organizations",                     IamMemberManage,         organizations::create()),
        get   (ADMIN,        "/organizations/{id}",                AllocationsRead,         organizations::show()),
        patch (ADMIN,        "/organizations/{id}",                IamMemberManage,         organizations::patch()),
        get   (ADMIN,        "/projects",                          AllocationsRead,         projects::list()),
        post  (ADMIN,        "/projects",                          IamMemberManage,         projects::create()),
        get   (ADMIN,        "/projects/{id}",                     AllocationsRead,         projects::show()),
        patch (ADMIN,        "/projects/{id}",                     IamMemberManage,         projects::patch()),
        get   (ADMIN,        "/policies",                          AuditRead,               policies::list()),
        put   (ADMIN,        "/policies/{scope}/{scope_id}/{key}", IamMemberManage,         policies::put()),

        get   (ORGANIZATION, "/members",                           IamMemberManage,         members::list()),
        post  (ORGANIZATION, "/members",                           IamMemberManage,         members::create()),
        get   (ORGANIZATION, "/members/{id}",                      IamMemberManage,         members::show()),
        patch (ORGANIZATION, "/members/{id}",                      IamMemberManage,         members::patch()),
        delete(ORGANIZATION, "/members/{id}",                      IamMemberManage,         members::delete()),
        get   (ORGANIZATION, "/roles",                             IamMemberManage,         roles::list()),
        post  (ORGANIZATION, "/roles",                             IamMemberManage,         roles::create()),
        get   (ORGANIZATION, "/roles/{id}",                        IamMemberManage,         roles::show()),
        patch (ORGANIZATION, "/roles/{id}",                        IamMemberManage,         roles::patch()),
        delete(ORGANIZATION, "/roles/{id}",                        IamMemberManage,         roles::delete()),

        get   (PROJECT,      "/members",                           IamMemberManage,         members::list()),
        post  (PROJECT,      "/members",                           IamMemberManage,         members::create()),
        get   (PROJECT,      "/members/{id}",                      IamMemberManage,         members::show()),
        patch (PROJECT,      "/members/{id}",                      IamMemberManage,         members::patch()),
        delete(PROJECT,      "/members/{id}",                      IamMemberManage,         members::delete()),

        get   (PROJECT,      "/service-accounts",                  IamServiceAccountRead,   service_accounts::list()),
        post  (PROJECT,      "/service-accounts",                  IamServiceAccountManage, service_accounts::create()),
        get   (PROJECT,      "/service-accounts/{id}",             IamServiceAccountRead,   service_accounts::show()),
        delete(PROJECT,      "/service-accounts/{id}",             IamServiceAccountManage, service_accounts::delete()),
        post  (PROJECT,      "/service-accounts/{id}/disable",     IamServiceAccountManage, service_accounts::disable()),
        post  (PROJECT,      "/service-accounts/{id}/enable",      IamServiceAccountManage, service_accounts::enable()),
        post  (PROJECT,      "/service-accounts/{id}/rotate-key",  IamServiceAccountManage, service_accounts::rotate_key()),
        get   (PROJECT,      "/federated-trusts",                  IamServiceAccountRead,   federated_trusts::list()),
        post  (PROJECT,      "/federated-trusts",                  IamServiceAccountManage, federated_trusts::create()),
        get   (PROJECT,      "/federated-trusts/{id}",             IamServiceAccountRead,   federated_trusts::show()),
        delete(PROJECT,      "/federated-trusts/{id}",             IamServiceAccountManage, federated_trusts::delete()),

        get   (PROJECT,      "/access-credentials",                IamCredentialRead,       access_credentials::list()),
        post  (PROJECT,      "/access-credentials",                IamCredentialManage,     access_credentials::create()),
        get   (PROJECT,      "/access-credentials/{id}",           IamCredentialRead,       access_credentials::show()),
        post  (PROJECT,      "/access-credentials/{id}/rotate",    IamCredentialManage,     access_credentials::rotate()),
        post  (PROJECT,      "/access-credentials/{id}/deliver",   IamCredentialManage,     access_credentials::deliver()),
        post  (PROJECT,      "/access-credentials/{id}/revoke",    IamCredentialManage,     access_credentials::revoke()),

        get   (PROJECT,      "/app-instances",                     AppsInstanceRead,        app_instances::list()),
        post  (PROJECT,      "/app-instances",                     AppsInstanceCreate,      app_instances::create()),
        get   (PROJECT,      "/app-instances/{id}",                KeyOrInstance(AppsInstanceRead), app_instances::show()),
        post  (PROJECT,      "/app-instances/plan",                AppsInstanceRead,        app_instances::plan_new()),
        post  (PROJECT,      "/app-instances/{id}/plan",           AppsInstanceRead,        app_instances::plan()),
        get   (PROJECT,      "/app-instances/{id}/events",         AppsInstanceRead,        app_instances::events()),
        post  (PROJECT,      "/app-instances/{id}/events",         Instance,                app_instances::report_event()),
        post  (PROJECT,      "/app-instances/{id}/heartbeat",      Instance,                app_instances::heartbeat()),
        get   (PROJECT,      "/app-instances/{id}/operations",     AppsInstanceRead,        app_instances::operations()),
        get   (PROJECT,      "/app-instances/{id}/members",        AppsInstanceRead,        app_instances::members()),
        get   (PROJECT,      "/app-instances/{id}/access",         AppsInstanceRead,        app_instances::access()),
        get   (PROJECT,      "/app-instances/{id}/rendered",       AppsInstanceRead,        app_instances::rendered()),
        get   (PROJECT,      "/app-instances/{id}/logs",           AppsInstanceRead,        app_instances::logs()),
        get   (PROJECT,      "/app-instances/{id}/receipt",        AppsInstanceRead,        app_instances::receipt()),

        get   (PROJECT,      "/allocations",                       AllocationsRead,         allocations::list()),
        get   (PROJECT,      "/allocations/{id}",                  AllocationsRead,         allocations::show()),
        get   (ADMIN,        "/allocations",                       AllocationsRead,         allocations::list()),
        get   (ADMIN,        "/allocations/{id}",                  AllocationsRead,         allocations::show()),
        post  (ADMIN,        "/allocations",                       AllocationsManage,       allocations::create()),
        post  (ADMIN,        "/allocations/{id}/release",          AllocationsManage,       allocations::release()),
        get   (ADMIN,        "/teardown-debts",                    NodesManage,             leftovers::debts()),
        get   (ADMIN,        "/resource-ledger/leaks",             NodesManage,             leftovers::leaks()),
        get   (ADMIN,        "/nodes",                             NodesManage,             nodes::list()),
        post  (ADMIN,        "/nodes",                             NodesManage,             nodes::create()),
        get   (ADMIN,        "/nodes/{id}",                        NodesManage,             nodes::show()),
        post  (ADMIN,        "/nodes/{id}/drain",                  NodesManage,             nodes::drain()),
        post  (ADMIN,        "/nodes/{id}/activate",               NodesManage,             nodes::activate()),

        post  (NODES,        "/enroll",                            Public,                  node_agent::enroll()),
        post  (NODES,        "/{id}/token",                        Public,                  node_agent::token()),
        get   (NODES,        "/{id}/tasks/wait",                   Node,                    node_agent::wait()),
        post  (NODES,        "/{id}/tasks/{task_id}/progress",     Node,                    node_agent::progress()),
        post  (NODES,        "/{id}/tasks/{task_id}/result",       Node,                    node_agent::result()),
        post  (NODES,        "/{id}/heartbeat",                    Node,                    node_agent::heartbeat()),

        get   (PROJECT,      "/workflows",                         WorkflowsRead,           workflows::list()),
        get   (PROJECT,      "/workflows/{id}",                    WorkflowsRead,           workflows::show()),
        post  (PROJECT,      "/workflows/{id}/retry",              WorkflowsOperate,        workflows::retry()),
        post  (PROJECT,      "/workflows/{id}/resume",             WorkflowsOperate,        workflows::resume()),
        post  (PROJECT,      "/workflows/{id}/pause",              WorkflowsOperate,        workflows::pause()),
        post  (PROJECT,      "/workflows/{id}/cancel",             WorkflowsOperate,        workflows::cancel()),
        get   (PROJECT,      "/workflows/{id}/stream",             WorkflowsRead,           workflows::stream()),

        get   (ADMIN,        "/workflows",                         WorkflowsRead,           workflows::list()),
        get   (ADMIN,        "/workflows/stuck",                   WorkflowsRead,           workflows::stuck()),
        post  (ADMIN,        "/workflows/bulk-retry",              WorkflowsOperate,        workflows::bulk_retry()),
        get   (ADMIN,        "/workflows/{id}",                    WorkflowsRead,           workflows::show()),
        post  (ADMIN,        "/workflows/{id}/retry",              WorkflowsOperate,        workflows::retry()),
        post  (ADMIN,        "/workflows/{id}/resume",             WorkflowsOperate,        workflows::resume()),
        post  (ADMIN,        "/workflows/{id}/pause",              WorkflowsOperate,        workflows::pause()),
        post  (ADMIN,        "/workflows/{id}/cancel",             WorkflowsOperate,        workflows::cancel()),
        get   (ADMIN,        "/workflows/{id}/stream",             WorkflowsRead,           workflows::stream()),

        get   (ADMIN,        "/schedules",                         WorkflowsRead,           schedules::list()),
        get   (ADMIN,        "/schedules/{name}",                  WorkflowsRead,           schedules::show()),
        post  (ADMIN,        "/schedules/{name}/run",              WorkflowsOperate,        schedules::run()),
        post  (ADMIN,        "/schedules/{name}/pause",            WorkflowsOperate,        schedules::pause()),
        post  (ADMIN,        "/schedules/{name}/resume",           WorkflowsOperate,        schedules::resume()),

        get   (PROJECT,      "/events",                            EventsRead,              events::list()),
        get   (PROJECT,      "/webhooks",                          EventsRead,              webhooks::list()),
        post  (PROJECT,      "/webhooks",                          WebhooksManage,          webhooks::create()),
        get   (PROJECT,      "/webhooks/{id}",                     EventsRead,              webhooks::show()),
        patch (PROJECT,      "/webhooks/{id}",                     WebhooksManage,          webhooks::patch()),
        delete(PROJECT,      "/webhooks/{id}",                     WebhooksManage,          webhooks::delete()),
        post  (PROJECT,      "/webhooks/{id}/rotate-secret",       WebhooksManage,          webhooks::rotate_secret()),
        get   (PROJECT,      "/webhooks/{id}/deliveries",          EventsRead,              webhooks::deliveries()),
        post  (PROJECT,      "/webhooks/{id}/replay",              WebhooksManage,          webhooks::replay()),
        get   (PROJECT,      "/audit",                             AuditRead,               audit::list()),
        get   (ADMIN,        "/audit",                             AuditRead,               audit::list()),
        get   (ROOT,         "/trace/{correlation_id}",            SignedIn,                traces::show()),

        get   (ROOT,         "/billing/usage",                     Somewhere(BillingUsageRead), billing::usage()),
        get   (ROOT,         "/billing/ledger",                    Somewhere(BillingUsageRead), billing::ledger()),
        get   (ROOT,         "/billing/balance",                   Somewhere(BillingUsageRead), billing::balance()),
        get   (ROOT,         "/billing/bill",                      Somewhere(BillingUsageRead), billing::bill()),
        post  (PROJECT,      "/usage-events",                      KeyOrInstance(BillingUsageWrite), billing::usage_events()),
        get   (PROJECT,      "/budget",                            BillingUsageRead,        billing::budget()),
        put   (PROJECT,      "/budget",                            BillingBudgetManage,     billing::set_budget()),
        post  (ADMIN,        "/projects/{id}/credits",            BillingPriceManage,      billing::create_credit()),
        get   (ADMIN,        "/prices",                            BillingUsageRead,        prices::list()),
        post  (ADMIN,        "/prices",                            BillingPriceManage,      prices::create()),

        get   (PROJECT,      "/app-artifacts",                     AppsArtifactRead,        artifacts::list()),
        post  (PROJECT,      "/app-artifacts",                     AppsArtifactPublish,     artifacts::register()),
        post  (PROJECT,      "/app-artifacts/publish-intents",     AppsArtifactPublish,     artifacts::publish_intent()),
        post  (PROJECT,      "/app-artifacts/pull-intents",        AppsArtifactRead,        artifacts::pull_intent()),
        get   (PROJECT,      "/app-artifacts/{id}",                AppsArtifactRead,        artifacts::show()),
        post  (PROJECT,      "/app-artifacts/{id}/verify",         AppsArtifactPublish,     artifacts::verify()),
        post  (PROJECT,      "/app-artifacts/{id}/revoke",         AppsArtifactRevoke,      artifacts::revoke()),
        get   (PROJECT,      "/signing-keys",                      AppsArtifactRead,        signing_keys::list()),
        post  (PROJECT,      "/signing-keys",                      AppsArtifactRevoke,      signing_keys::create()),
        get   (PROJECT,      "/signing-keys/{id}",                 AppsArtifactRead,        signing_keys::show()),
        post  (PROJECT,      "/signing-keys/{id}/retire",          AppsArtifactRevoke,      signing_keys::retire()),
        get   (ROOT,         "/platform/releases",                 SignedIn,                platform_releases::list()),
        get   (ROOT,         "/platform/releases/{version}",       SignedIn,                platform_releases::show()),
        get   (ROOT,         "/platform/releases/{version}/artifacts/{name}/download", SignedIn, platform_releases::download()),
        post  (ROOT,         "/platform/releases/{version}/artifacts/{name}/pull-intents", SignedIn, platform_releases::pull_intent()),
        post  (ADMIN,        "/platform/releases",                 AppsVersionManage,       platform_releases::create()),
        head  (OUTSIDE,      "/uploads/{token}",                   Public,                  uploads::look()),
        put   (OUTSIDE,      "/uploads/{token}",                   Public,                  uploads::write()),
        get   (ROOT,         "/apps/registry",                     SignedIn,                registry::describe()),
        get   (OUTSIDE,      "/registry/token",                    Public,                  registry::token()),
        post  (OUTSIDE,      "/internal/v1/registry/events",       Public,                  registry::events()),
        post  (OUTSIDE,      "/v1/sys/wrapping/unwrap",            Public,                  wrapping::unwrap()),
        put   (OUTSIDE,      "/v1/sys/wrapping/unwrap",            Public,                  wrapping::unwrap_by_put()),
        get   (OUTSIDE,      "/v1/sys/wrapping/lookup",            Public,                  wrapping::lookup_by_get()),
        post  (OUTSIDE,      "/v1/sys/wrapping/lookup",            Public,                  wrapping::lookup()),
        put   (OUTSIDE,      "/v1/sys/wrapping/lookup",            Public,                  wrapping::lookup_by_put()),

        get   (ROOT,         "/apps/catalog",                      Somewhere(AppsCatalogRead), catalog::list()),
        get   (ROOT,         "/apps/catalog/{slug}",               Somewhere(AppsCatalogRead), catalog::show()),
        get   (ROOT,         "/apps/catalog/{slug}/versions",      Somewhere(AppsCatalogRead), catalog::list_versions()),
        get   (ROOT,         "/apps/catalog/{slug}/versions/{version}", Somewhere(AppsCatalogRead), catalog::show_version()),
        get   (ROOT,         "/apps/catalog/{slug}/versions/{version}/explain", Somewhere(AppsCatalogRead), catalog::explain()),
        get   (ROOT,         "/apps/catalog/{slug}/versions/{version}/gates", Somewhere(AppsCatalogRead), catalog::gates()),
        post  (PROJECT,      "/apps/manifests",                    AppsManifestSubmit,      manifests::submit()),
        get   (PROJECT,      "/apps/submissions",                  AppsCatalogRead,         submissions::list()),
        post  (ADMIN,        "/apps/manifests",                    AppsVersionManage,       manifests::register()),
        get   (ADMIN,        "/apps/submissions",                  AppsVersionManage,       submissions::list()),
        get   (ADMIN,        "/apps/submissions/{id}",             AppsVersionManage,       submissions::show()),
        post  (ADMIN,        "/apps/submissions/{id}/approve",     AppsVersionManage,       submissions::approve()),
        post  (ADMIN,        "/apps/submissions/{id}/reject",      AppsVersionManage,       submissions::reject()),

        get   (PROJECT,      "/apps/entitlements",                 AppsEntitlementRead,     entitlements::list()),
        put   (PROJECT,      "/apps/entitlements/{slug}",          Person(AppsEntitlementManage), entitlements::set()),
        get   (PROJECT,      "/apps/entitlements/{slug}/effective", AppsEntitlementRead,    entitlements::effective()),
    ];
    // Lifecycle actions say themselves what they ask of their caller.
    routes.extend(action::routes::<AppVersion>());
    routes.extend(action::routes::<AppArtifact>());
    routes.extend(action::routes::<AppInstance>());
    routes.extend(action::routes::<store::nodes::Node>());
    routes
}

/// Everything the server answers. `extra` are public routes of other protocols, whose errors keep their own shape.
pub fn router(state: State, extra: Router) -> Router {
    let mut router = about_the_process()
        .route("/api/v1/openapi.json", plain_get(openapi::serve))
        .route("/api/v1/asyncapi.json", plain_get(asyncapi::serve));
    let mut slow = Router::new();
    for route in routes() {
        let mounted = route.mount(&state);
        match route.endpoint.slow {
            true => slow = slow.route(&route.path, mounted),
            false => router = router.route(&route.path, mounted),
        }
    }
    router = router.merge(console::routes(&state));
    if extra.has_routes() {
        let door = Door { state: state.clone(), proves_itself: false, crowd: Crowd::Anybody };
        let extra = extra
            .route_layer(middleware::map_response(edge::keep_shape))
            .route_layer(middleware::from_fn_with_state(door, strangers::door));
        router = router.merge(extra.with_state(()));
    }
    layered(router, slow, state)
}

/// What a process answers that drives runs and has no API.
pub(crate) fn probes(state: State) -> Router {
    layered(about_the_process(), Router::new(), state)
}

fn about_the_process() -> Router<State> {
    Router::new()
        .route("/livez", plain_get(health::livez))
        .route("/readyz", plain_get(health::readyz))
        .route("/version", plain_get(health::version))
        .route("/metrics", plain_get(metrics::scrape))
}

/// What is slow has no deadline here; its handlers have their own.
fn layered(router: Router<State>, slow: Router<State>, state: State) -> Router {
    let outermost = || middleware::from_fn_with_state(state.clone(), edge::edge);
    let of_bodies =
        || (Extension(body::Patience(state.receive_within)), DefaultBodyLimit::max(body::MAX_BYTES));
    // Together, from the outermost in: each `layer` of its own would be one more allocation per request.
    let layers = (
        outermost(),
        CatchPanicLayer::custom(after_panic),
        TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, DEADLINE),
        of_bodies(),
    );
    let slow = slow.layer((outermost(), CatchPanicLayer::custom(after_panic), of_bodies()));
    router.layer(layers).merge(slow).with_state(state)
}

pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) place: Place,
    /// What the caller must hold in that place.
    pub(crate) access: Access,
    pub(crate) endpoint: Endpoint,
}

impl Route {
    pub(crate) fn new(
        method: Method,
        scope: &str,
        path: &str,
        access: impl Into<Access>,
        endpoint: Endpoint,
    ) -> Route {
        let place = match scope {
            PROJECT => Place::Project,
            ORGANIZATION => Place::Organization,
            ADMIN => Place::Platform,
            _ => Place::Nowhere,
        };
        Route { method, path: format!("{scope}{path}"), place, access: access.into(), endpoint }
    }

    /// The handler behind its gate, or behind the door that anybody finds open.
    fn mount(&self, state: &State) -> MethodRouter<State> {
        let handler = self.endpoint.mount(self.filter());
        if self.access == Public {
            let proves_itself = self.endpoint.proves_itself;
            let door = Door { state: state.clone(), proves_itself, crowd: self.crowd() };
            return handler.route_layer(middleware::from_fn_with_state(door, strangers::door));
        }
        let gate_of = Gate {
            state: state.clone(),
            access: self.access,
            place: self.place,
            operation: self.endpoint.name,
            crowd: self.crowd(),
        };
        handler.route_layer(middleware::from_fn_with_state(gate_of, gate))
    }

    fn crowd(&self) -> Crowd {
        if self.path.starts_with(NODES) { Crowd::Nodes } else { Crowd::Anybody }
    }

    fn filter(&self) -> MethodFilter {
        match self.method {
            Method::POST => MethodFilter::POST,
            Method::PUT => MethodFilter::PUT,
            Method::PATCH => MethodFilter::PATCH,
            Method::DELETE => MethodFilter::DELETE,
            Method::HEAD => MethodFilter::HEAD,
            _ => MethodFilter::GET,
        }
    }

    /// Whether the route changes something and so honours idempotency keys. What nodes say of themselves has numbers and keys of
    /// its own, and a heartbeat may be repeated at will.
    pub(crate) fn is_mutation(&self) -> bool {
        self.method != Method::GET
            && !matches!(self.access, Public | Node)
            && self.endpoint.changes
            && !self.endpoint.said_again
    }
}

fn get(scope: &str, path: &str, access: impl Into<Access>, endpoint: Endpoint) -> Route {
    Route::new(Method::GET, scope, path, access, endpoint)
}

fn head(scope: &str, path: &str, access: impl Into<Access>, endpoint: Endpoint) -> Route {
    Route::new(Method::HEAD, scope, path, access, endpoint)
}

fn post(scope: &str, path: &str, access: impl Into<Access>, endpoint: Endpoint) -> Route {
    Route::new(Method::POST, scope, path, access, endpoint)
}

fn put(scope: &str, path: &str, access: impl Into<Access>, endpoint: Endpoint) -> Route {
    Route::new(Method::PUT, scope, path, access, endpoint)
}

fn patch(scope: &str, path: &str, access: impl Into<Access>, endpoint: Endpoint) -> Route {
    Route::new(Method::PATCH, scope, path, access, endpoint)
}

fn delete(scope: &str, path: &str, access: impl Into<Access>, endpoint: Endpoint) -> Route {
    Route::new(Method::DELETE, scope, path, access, endpoint)
}

/// A panic costs its own request only; what it said goes to the log.
fn after_panic(panic: Box<dyn Any + Send>) -> Response {
    let said =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    ApiError::internal(&format_args!("panic: {}", said.unwrap_or("without words"))).into_response()
}

#[cfg(test)]
mod tests;
