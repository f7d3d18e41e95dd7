//! The platform's public words over HTTP: what a request may say and what an answer looks like.
//!
//! One file per resource, each with serde for the wire and utoipa for the API document. The server builds its
//! answers from these types and the command line reads them, so the two cannot drift apart.

pub mod access_credential;
pub mod allocation;
pub mod app_instance;
pub mod artifact;
pub mod audit;
pub mod billing;
pub mod bulk_retry;
pub mod catalog;
pub mod entitlement;
pub mod error;
pub mod federated_trust;
pub mod instance_plan;
pub mod intent;
pub mod leftover;
pub mod manifest;
pub mod me;
pub mod member;
pub mod node;
pub mod operate;
pub mod organization;
pub mod page;
pub mod platform_release;
pub mod policy;
pub mod process;
pub mod project;
pub mod registry;
pub mod role;
pub mod schedule;
pub mod service_account;
pub mod signing_key;
pub mod submission;
pub mod token;
pub mod trace;
pub mod usage;
pub mod usage_event;
pub mod webhook;
pub mod workflow;
pub mod wrapping;

pub use access_credential::{
    AccessCredential, AccessCredentialStatus, AccessCredentialType, DeliverAccessCredential,
    DeliveredAccessCredential, NewAccessCredential, RotateAccessCredential,
};
pub use allocation::{Allocation, AllocationWithRun, NewAllocation, ReleasedAllocation};
pub use app_instance::{
    AppInstance, AppInstanceWithRun, InstanceAccess, InstanceArtifact, InstanceEndpoint, InstanceEventType,
    InstanceHeartbeat, InstanceLogs, InstanceMember, InstanceReason, InstanceReport, InstanceReported,
    NewAppInstance, RenderedInstance, TeardownReceipt, WantedResources,
};
pub use artifact::{
    Artifact, ArtifactAccepted, ArtifactReference, ArtifactRevoked, ArtifactSlot, NewArtifact,
    NewVerification,
};
pub use audit::{AuditActor, AuditEntry, AuditResult};
pub use billing::{
    Balance, Bill, Budget, BudgetEffect, Ledger, NewCredit, NewPrice, Price, PriceMade, PriceModel, SetBudget,
};
pub use bulk_retry::{BulkRetry, BulkRetryFilter, BulkRetryReport, BulkVerdict, Verdict};
pub use catalog::{
    AppVersion, AppVersionAccepted, CatalogApp, VersionCanary, VersionGates, VersionTransition,
};
pub use entitlement::{EffectiveEntitlement, Entitlement, EntitlementSet, ModeAndScope, SetEntitlement};
pub use error::{ErrorEnvelope, Invalid, Problem};
pub use federated_trust::{FederatedTrust, NewFederatedTrust};
pub use instance_plan::{
    EffectiveInstance, InstancePlan, InstancePlanStep, InstancePrice, PlanInstance, PlannedAction,
};
pub use intent::{
    NewPlatformPullIntent, NewPublishIntent, NewPullIntent, PublishIntent, PullIntent, UploadProgress,
    WrappedCredential,
};
pub use leftover::{ResourceLeak, TeardownDebt};
pub use manifest::ValidManifest;
pub use me::{Me, MyGrant};
pub use member::{Member, MemberPatch, NewMember};
pub use node::{NewNode, Node, NodeAction, NodeWithRun, NodeWithToken};
pub use operate::{Operate, Operated, Resume};
pub use organization::{NewOrganization, Organization, OrganizationPatch};
pub use page::Page;
pub use platform_release::{NewPlatformArtifact, NewPlatformRelease, PlatformArtifact, PlatformRelease};
pub use policy::{Policy, PolicyValue, SetPolicy};
pub use process::Version;
pub use project::{NewProject, Project, ProjectPatch};
pub use registry::{
    RegistryActor, RegistryError, RegistryErrors, RegistryEvent, RegistryInfo, RegistryNotification,
    RegistryTarget, RegistryToken,
};
pub use role::{NewRole, Role, RolePatch};
pub use schedule::{MissedTicks, Overlap, Schedule, ScheduleResult};
pub use service_account::{
    NewServiceAccount, RotateKey, ServiceAccount, ServiceAccountKey, ServiceAccountStatus,
    ServiceAccountWithKey,
};
pub use signing_key::{NewSigningKey, SigningKey};
pub use submission::{ApproveSubmission, RejectSubmission, Submission, SubmissionDetail, SubmissionStatus};
pub use token::{AccessToken, OAuthError, ServiceAccountTokenRequest, TokenExchangeRequest};
pub use trace::{TraceEntry, TraceKind};
pub use usage::{UsageItem, UsagePage, UsageRecord, UsageSum, UsageWindow};
pub use usage_event::{UsageBatch, UsageData, UsageEvent, UsageResult, UsageResults, UsageVerdict};
pub use webhook::{
    NewWebhook, ReplayWebhook, Webhook, WebhookDelivery, WebhookPatch, WebhookReplayed, WebhookStatus,
    WebhookWithSecret,
};
pub use workflow::{
    Attempt, AttemptOutcome, LateSignal, RunStatus, Step, StepKind, StepProgress, StepState, StuckCause,
    StuckCode, WorkflowHandle, WorkflowRun, WorkflowRunDetail,
};
pub use wrapping::{UnwrapRequest, VaultAnswer, VaultErrors};
