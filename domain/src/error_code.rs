//! The closed list of error codes, each with its HTTP status and one sentence that explains it.
//!
//! Every error answer carries one of these codes. Clients branch on the code, people read the explanation, and a
//! new code is one variant and one row of the table: the table's length makes the compiler ask for the row.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// In the order of their HTTP status. `InternalError` stays last: it sizes the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorCode {
    InvalidRequest,
    ValidationError,
    TokenMissing,
    TokenInvalid,
    TokenExpired,
    TokenScopeInvalid,
    InsufficientPermissions,
    AdminRequired,
    OwnershipRequired,
    EntitlementRequired,
    PolicyDenied,
    RouteNotFound,
    OrganizationNotFound,
    ProjectNotFound,
    UserNotFound,
    MemberNotFound,
    RoleNotFound,
    ServiceAccountNotFound,
    FederatedTrustNotFound,
    AccessCredentialNotFound,
    NodeNotFound,
    NodeTaskNotFound,
    AllocationNotFound,
    AppInstanceNotFound,
    PolicyNotFound,
    WorkflowNotFound,
    ScheduleNotFound,
    TraceNotFound,
    WebhookNotFound,
    AppNotFound,
    VersionNotFound,
    SubmissionNotFound,
    ArtifactNotFound,
    SigningKeyNotFound,
    UploadNotFound,
    ReleaseNotFound,
    MethodNotAllowed,
    StateConflict,
    AlreadyExists,
    IdempotencyInProgress,
    OperationInProgress,
    VersionInUse,
    PreconditionFailed,
    PayloadTooLarge,
    UnsupportedMediaType,
    IdempotencyKeyReused,
    PlacementUnsatisfiable,
    ArtifactUntrusted,
    ArtifactNotDeployable,
    DigestMismatch,
    RateLimited,
    UpstreamError,
    ServiceUnavailable,
    InternalError,
}

struct Row {
    code: ErrorCode,
    name: &'static str,
    status: u16,
    explanation: &'static str,
}

const fn row(code: ErrorCode, name: &'static str, status: u16, explanation: &'static str) -> Row {
    Row { code, name, status, explanation }
}

#[rustfmt::skip]
const TABLE: [Row; ErrorCode::InternalError as usize + 1] = {
    use ErrorCode::*;
    [
        row(InvalidRequest, "invalid_request", 400, "A header, path or query value of the request cannot be understood."),
        row(ValidationError, "validation_error", 400, "The body was read but some of its values are not allowed; details.errors lists all of them."),
        row(TokenMissing, "token_missing", 401, "The request has no bearer token."),
        row(TokenInvalid, "token_invalid", 401, "The bearer token is not one of ours, or was revoked."),
        row(TokenExpired, "token_expired", 401, "The bearer token was valid and has expired; get a new one."),
        row(TokenScopeInvalid, "token_scope_invalid", 401, "The bearer token was issued for another audience or project."),
        row(InsufficientPermissions, "insufficient_permissions", 403, "The caller lacks the permission key this route asks for."),
        row(AdminRequired, "admin_required", 403, "This route is for platform administrators."),
        row(OwnershipRequired, "ownership_required", 403, "Only the owner of the resource may do this."),
        row(EntitlementRequired, "entitlement_required", 403, "The project is not entitled to this app."),
        row(PolicyDenied, "policy_denied", 403, "A policy of the platform, organization or project forbids this."),
        row(RouteNotFound, "route_not_found", 404, "No route has this path."),
        row(OrganizationNotFound, "organization_not_found", 404, "The organization does not exist, or is not the caller's to see."),
        row(ProjectNotFound, "project_not_found", 404, "The project does not exist, or is not the caller's to see."),
        row(UserNotFound, "user_not_found", 404, "Nobody with this id or name has signed in yet."),
        row(MemberNotFound, "member_not_found", 404, "The membership does not exist here."),
        row(RoleNotFound, "role_not_found", 404, "The organization has no such role."),
        row(ServiceAccountNotFound, "service_account_not_found", 404, "The service account does not exist in this project."),
        row(FederatedTrustNotFound, "federated_trust_not_found", 404, "The federated trust does not exist in this project."),
        row(AccessCredentialNotFound, "access_credential_not_found", 404, "The project has no such credential, or it was revoked."),
        row(NodeNotFound, "node_not_found", 404, "The node does not exist."),
        row(NodeTaskNotFound, "node_task_not_found", 404, "The node has no such task."),
        row(AllocationNotFound, "allocation_not_found", 404, "The allocation does not exist in this project."),
        row(AppInstanceNotFound, "app_instance_not_found", 404, "The app instance does not exist in this project."),
        row(PolicyNotFound, "policy_not_found", 404, "No policy has this scope and key."),
        row(WorkflowNotFound, "workflow_not_found", 404, "The workflow run does not exist in this project."),
        row(ScheduleNotFound, "schedule_not_found", 404, "No schedule has this name."),
        row(TraceNotFound, "trace_not_found", 404, "Nothing the caller may read carries this correlation id."),
        row(WebhookNotFound, "webhook_not_found", 404, "The webhook does not exist in this project."),
        row(AppNotFound, "app_not_found", 404, "The catalog has no app with this slug."),
        row(VersionNotFound, "version_not_found", 404, "The app has no such version."),
        row(SubmissionNotFound, "submission_not_found", 404, "No manifest was submitted under this id."),
        row(ArtifactNotFound, "artifact_not_found", 404, "The artifact does not exist in this project."),
        row(SigningKeyNotFound, "signing_key_not_found", 404, "The signing key does not exist in this project."),
        row(UploadNotFound, "upload_not_found", 404, "The upload is unknown, has expired, or was registered already."),
        row(ReleaseNotFound, "release_not_found", 404, "The platform has no release of this version."),
        row(MethodNotAllowed, "method_not_allowed", 405, "The path exists but not with this method; the Allow header lists those it has."),
        row(StateConflict, "state_conflict", 409, "The resource's present state does not allow this; details name the state and what is allowed."),
        row(AlreadyExists, "already_exists", 409, "A resource with this name exists already."),
        row(IdempotencyInProgress, "idempotency_in_progress", 409, "The first request with this idempotency key is still running."),
        row(OperationInProgress, "operation_in_progress", 409, "Another operation holds the resource; details name its workflow run."),
        row(VersionInUse, "version_in_use", 409, "Instances still use this version; details list them."),
        row(PreconditionFailed, "precondition_failed", 412, "The resource has changed since the If-Match tag was read; read it again."),
        row(PayloadTooLarge, "payload_too_large", 413, "The body is larger than the route accepts."),
        row(UnsupportedMediaType, "unsupported_media_type", 415, "The body's Content-Type is not one the route reads."),
        row(IdempotencyKeyReused, "idempotency_key_reused", 422, "This idempotency key was used before with another body."),
        row(PlacementUnsatisfiable, "placement_unsatisfiable", 422, "No allocation satisfies the request; details hold the placement matrix."),
        row(ArtifactUntrusted, "artifact_untrusted", 422, "The artifact has not passed the checks that policy requires."),
        row(ArtifactNotDeployable, "artifact_not_deployable", 422, "The artifact's lifecycle state does not allow deploying it."),
        row(DigestMismatch, "digest_mismatch", 422, "The bytes do not have the digest that was declared."),
        row(RateLimited, "rate_limited", 429, "Too many requests, or too much work waiting already; try again after Retry-After."),
        row(UpstreamError, "upstream_error", 502, "A service the platform depends on answered with an error."),
        row(ServiceUnavailable, "service_unavailable", 503, "The platform cannot serve this right now; try again after Retry-After."),
        row(InternalError, "internal_error", 500, "The platform failed; the correlation id finds the cause in its logs."),
    ]
};

impl ErrorCode {
    /// Every code of the list, for the documentation and for `explain`.
    pub fn all() -> impl Iterator<Item = ErrorCode> {
        TABLE.iter().map(|row| row.code)
    }

    pub const fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The HTTP status every answer with this code has.
    pub const fn status(self) -> u16 {
        self.row().status
    }

    /// One sentence for the person who met the code.
    pub const fn explanation(self) -> &'static str {
        self.row().explanation
    }

    const fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an error code of the platform")]
pub struct UnknownErrorCode(String);

impl FromStr for ErrorCode {
    type Err = UnknownErrorCode;

    fn from_str(name: &str) -> Result<ErrorCode, UnknownErrorCode> {
        ErrorCode::all().find(|code| code.as_str() == name).ok_or_else(|| UnknownErrorCode(name.to_owned()))
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ErrorCode, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl PartialSchema for ErrorCode {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("The closed list of error codes."))
            .enum_values(Some(ErrorCode::all().map(ErrorCode::as_str)))
            .into()
    }
}

impl ToSchema for ErrorCode {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_finds_its_own_row() {
        for (place, row) in TABLE.iter().enumerate() {
            assert_eq!(row.code as usize, place, "{} stands in another code's place", row.name);
        }
    }

    #[test]
    fn names_are_unique_snake_case_and_parse_back() {
        let mut seen = std::collections::HashSet::new();
        for code in ErrorCode::all() {
            assert!(seen.insert(code.as_str()), "{code} is listed twice");
            assert!(code.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
            assert_eq!(code.as_str().parse(), Ok(code));
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
        assert!("no_such_code".parse::<ErrorCode>().is_err());
    }

    #[test]
    fn every_code_is_an_error_status_and_a_sentence() {
        for code in ErrorCode::all() {
            assert!((400..600).contains(&code.status()), "{code}");
            assert!(code.explanation().ends_with('.'), "{code}");
        }
    }
}
