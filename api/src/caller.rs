//! Who asks, where, and for what: put together once by the gate, read by every handler behind it.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use domain::{Demand, PermissionSet, Principal, Scope};
use engine::Asker;
use store::audit::NewEntry;
use store::principals::Standing;

use crate::edge::Context;
use crate::error::ApiError;

#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) standing: Arc<Standing>,
    /// The place that the path names; routes outside any place act on the platform.
    pub(crate) scope: Scope,
    /// What the route asks of its caller there.
    pub(crate) demand: Option<Demand>,
    /// The route's name, which is also the action that the audit log tells.
    pub(crate) operation: &'static str,
    pub(crate) context: Context,
}

impl Caller {
    pub(crate) fn principal(&self) -> &Principal {
        &self.standing.principal
    }

    /// Everything the caller may do here, and so the most they can give to others.
    pub(crate) fn keys(&self) -> PermissionSet {
        self.principal().keys_in(self.scope)
    }

    pub(crate) fn asker(&self, reason: Option<String>) -> Asker {
        Asker {
            actor: self.principal().id.to_string(),
            reason,
            correlation_id: self.context.correlation_id.to_string(),
        }
    }

    /// The beginning of an audit entry: everything but what was done.
    pub(crate) fn entry(&self) -> NewEntry {
        NewEntry {
            org_id: self.scope.org(),
            project_id: self.scope.project(),
            actor_id: Some(self.principal().id),
            actor_type: Some(self.principal().actor_type.as_str()),
            actor_role: self.principal().role_in(self.scope).map(str::to_owned),
            action: self.operation.to_owned(),
            ..self.context.entry()
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, ApiError> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| ApiError::internal(&"a handler without the gate"))
    }
}
