//! `P/audit` and `A/audit`: what was done and what was refused, newest first.

use api_types::{AuditActor, AuditEntry, AuditResult, Page};
use axum::extract::State as Shared;
use domain::CorrelationId;
use store::audit::{self, Entry, Filter};
use utoipa::PartialSchema;
use utoipa::openapi::schema::KnownFormat;
use uuid::Uuid;

use crate::caller::Caller;
use crate::endpoint::{Endpoint, text_as, text_like, word};
use crate::error::ApiError;
use crate::json::Json;
use crate::paging::Paging;
use crate::params::Params;
use crate::state::State;

pub(crate) fn list() -> Endpoint {
    Endpoint::new("list_audit", "What was done and what was refused, newest first", all)
        .query("actor_id", text_as(KnownFormat::Uuid), "Only what this principal did or tried.")
        .query("action", word(), "Only this operation.")
        .query("target", word(), "Only what was done to this resource, as `kind:id`.")
        .query("result", AuditResult::schema(), "Only what succeeded, or only what was denied.")
        .query("correlation_id", text_like(CorrelationId::PATTERN), "Only what was set off under this id.")
        .query("since", text_as(KnownFormat::DateTime), "Only entries of this time or later.")
        .query("project_id", text_as(KnownFormat::Uuid), "Only this project; needed only under `/admin`.")
        .answers_page::<AuditEntry>("A page of entries.")
}

async fn all(
    Shared(state): Shared<State>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<Page<AuditEntry>>, ApiError> {
    let paging = Paging::read(&mut params, "aud1");
    let project: Option<Uuid> = params.parsed("project_id", "a UUID");
    let here = caller.scope.project();
    if project.is_some() && here.is_some() && project != here {
        params.problem("project_id", "differs from the project in the path");
    }
    let correlation_id =
        params.parsed::<CorrelationId>("correlation_id", "1 to 128 characters of [A-Za-z0-9._:-]");
    let result = params.text("result");
    if result.as_deref().is_some_and(|word| !["succeeded", "denied"].contains(&word)) {
        params.problem("result", "must be succeeded or denied");
    }
    let filter = Filter {
        project_id: here.or(project),
        actor_id: params.parsed("actor_id", "a UUID"),
        action: params.text("action"),
        target: params.text("target"),
        result,
        correlation_id: correlation_id.map(String::from),
        since: params.parsed("since", "an RFC 3339 time such as 2026-01-31T12:00:00Z"),
        before: paging.after,
        limit: paging.rows(),
    };
    params.finish()?;
    let mut tx = state.read().await?;
    let rows = audit::list(&mut tx, &filter).await?;
    tx.rollback().await?;
    Ok(Json(paging.page(rows, |row| row.id, shown)))
}

fn shown(row: Entry) -> AuditEntry {
    AuditEntry {
        id: row.id,
        at: row.at,
        org_id: row.org_id,
        project_id: row.project_id,
        actor: AuditActor { id: row.actor_id, r#type: row.actor_type, role: row.actor_role },
        action: row.action,
        target: row.target,
        result: if row.result == "denied" { AuditResult::Denied } else { AuditResult::Succeeded },
        code: row.code,
        before: row.before,
        after: row.after,
        reason: row.reason,
        correlation_id: row.correlation_id,
        ip: row.ip,
        user_agent: row.user_agent,
    }
}
