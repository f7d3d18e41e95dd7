//! The console: a page for people, served beside the API that it speaks to, and the way they sign in to it.
//!
//! The page is files; what it may do is decided by the gate, as for everybody. Signing in is left to the issuer; what
//! stays is a session, known to the browser as a cookie and to us as a row. Nothing here ever sees a password.

mod attempt;
mod cookie;
mod files;
mod message;
mod session;
mod sign_in;
mod sign_out;

use std::sync::Arc;

use axum::routing::{get, post};
use axum::{Router, middleware};
use clients::oidc::code_flow::CodeFlow;

pub use self::files::File;
pub(crate) use self::session::{Presented, presented};
use crate::edge;
use crate::state::State;
use crate::strangers::{self, Crowd, Door};

/// What the console consists of in this process.
#[derive(Clone, Default)]
pub struct Console {
    /// None: the binary was built without it, and says so.
    pub files: &'static [File],
    /// None: there is no issuer to sign in at.
    pub sign_in: Option<Arc<CodeFlow>>,
    /// Whether browsers come by https, so that cookies can be tied to this very host.
    pub https: bool,
}

pub(crate) fn routes(state: &State) -> Router<State> {
    // Errors of these are pages for a person; those of the session are the API's.
    let pages = Router::new()
        .route("/", get(files::root))
        .route("/console", get(files::root))
        .route("/console/", get(files::page))
        .route("/console/{*path}", get(files::any));
    // Whoever signs in leaves a row behind.
    let door = Door { state: state.clone(), proves_itself: false, crowd: Crowd::Anybody };
    let signing_in = Router::new()
        .route("/console/login", get(sign_in::begin))
        .route("/console/callback", get(sign_in::finish))
        .route_layer(middleware::from_fn_with_state(door, strangers::door));
    let pages = pages.merge(signing_in).route_layer(middleware::map_response(edge::keep_shape));
    pages.route("/console/session", get(session::show)).route("/console/logout", post(sign_out::sign_out))
}
