//! By what a caller came in whose answer goes on for long. A stream looks at it again and again and ends when it holds no
//! more: an expired token, a disabled machine, a person who signed out or was removed hears nothing further. Whoever comes
//! back is told why by the gate.

use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Method, header};
use domain::{ErrorCode, authorize};

use crate::caller::Caller;
use crate::error::ApiError;
use crate::state::State;

/// How often a stream looks. What it costs is mostly memory: authority has a version, read for the whole process at once.
pub(crate) const EVERY: Duration = Duration::from_secs(2);
/// How long a stream goes on while nobody can say whether it may: the issuer or the database does not answer.
const UNJUDGED: Duration = Duration::from_secs(60);

pub(crate) struct Pass {
    state: State,
    caller: Caller,
    /// The token or the cookie, as it was shown.
    shown: HeaderMap,
    looked: Instant,
    held: Instant,
}

impl Pass {
    pub(crate) fn of(state: &State, caller: Caller, headers: &HeaderMap) -> Pass {
        let mut shown = HeaderMap::new();
        for name in [header::AUTHORIZATION, header::COOKIE] {
            shown.extend(headers.get_all(&name).iter().map(|value| (name.clone(), value.clone())));
        }
        let now = Instant::now();
        Pass { state: state.clone(), caller, shown, looked: now, held: now }
    }

    /// Whether the caller may hear more. Ask before anything is told, and at least [`EVERY`] so often.
    pub(crate) async fn holds(&mut self) -> bool {
        if self.looked.elapsed() < EVERY {
            return true;
        }
        self.looked = Instant::now();
        let refusal = match self.look().await {
            Ok(()) => {
                self.held = self.looked;
                return true;
            }
            Err(refusal) => refusal,
        };
        let undecided = refusal.code.status() >= 500 && self.held.elapsed() < UNJUDGED;
        if !undecided {
            let correlation_id = &self.caller.context.correlation_id;
            tracing::info!(%correlation_id, code = %refusal.code, "a stream ended: its caller may not follow it any more");
        }
        undecided
    }

    async fn look(&self) -> Result<(), ApiError> {
        let Pass { state, caller, .. } = self;
        let standing = state.identity.of(state, &Method::GET, &self.shown, &caller.context).await?;
        match caller.demand {
            Some(demand) => authorize(&standing.principal, demand, caller.scope)
                .map_err(|_| ApiError::plain(ErrorCode::InsufficientPermissions)),
            None => Ok(()),
        }
    }
}
