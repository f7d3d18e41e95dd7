// The words of the API, as its document has them. Nothing here is written twice: a change of the API that the console
// does not follow is a compile error.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Run = Schemas["WorkflowRun"];
export type RunDetail = Schemas["WorkflowRunDetail"];
export type RunStatus = Schemas["RunStatus"];
export type Step = Schemas["Step"];
export type StepState = Schemas["StepState"];
export type Attempt = Schemas["Attempt"];
export type StuckCause = Schemas["StuckCause"];
export type StuckCode = Schemas["StuckCode"];
export type Operated = Schemas["Operated"];
export type BulkRetry = Schemas["BulkRetry"];
export type BulkRetryReport = Schemas["BulkRetryReport"];
export type Schedule = Schemas["Schedule"];
export type AuditEntry = Schemas["AuditEntry"];
export type ServiceAccount = Schemas["ServiceAccount"];
export type ServiceAccountWithKey = Schemas["ServiceAccountWithKey"];
export type Member = Schemas["Member"];
export type Project = Schemas["Project"];
export type Me = Schemas["Me"];
export type App = Schemas["CatalogApp"];
export type Version = Schemas["AppVersion"];
export type VersionStatus = Schemas["VersionStatus"];
export type Gates = Schemas["VersionGates"];
export type Gate = Schemas["VersionGate"];
export type Transition = Schemas["VersionTransition"];
export type Explanation = Schemas["VersionExplanation"];
export type ModePair = Schemas["SupportedPair"];
export type Manifest = Schemas["Manifest"];
export type Entitlement = Schemas["Entitlement"];
export type EffectiveEntitlement = Schemas["EffectiveEntitlement"];
export type Submission = Schemas["Submission"];
export type SubmissionDetail = Schemas["SubmissionDetail"];
export type SubmissionStatus = Schemas["SubmissionStatus"];
export type Instance = Schemas["AppInstance"];
export type InstanceStatus = Schemas["InstanceStatus"];
export type InstanceWithRun = Schemas["AppInstanceWithRun"];
export type InstancePlan = Schemas["InstancePlan"];
export type PlanStep = Schemas["InstancePlanStep"];
export type ChangeStrategy = Schemas["ChangeStrategy"];
export type PlacementRow = Schemas["Row"];
export type Access = Schemas["InstanceAccess"];
export type Receipt = Schemas["TeardownReceipt"];
export type Artifact = Schemas["Artifact"];
export type WorkflowHandle = Schemas["WorkflowHandle"];
export type Lifecycle = Schemas["Lifecycle"];
export type Trust = Schemas["Trust"];
export type SigningKey = Schemas["SigningKey"];
export type Release = Schemas["PlatformRelease"];
export type Node = Schemas["Node"];
export type NodeStatus = Schemas["NodeStatus"];
export type NodeWithToken = Schemas["NodeWithToken"];
export type Inventory = Schemas["Inventory"];
export type Workload = Schemas["WorkloadReport"];
export type AccessCredential = Schemas["AccessCredential"];
export type Allocation = Schemas["Allocation"];
export type AllocationStatus = Schemas["AllocationStatus"];
export type InstanceMember = Schemas["InstanceMember"];
export type StatusReason = Schemas["StatusReason"];
export type LogLine = Schemas["LogLine"];
export type InstanceLogs = Schemas["InstanceLogs"];
export type CloudEvent = Schemas["CloudEvent"];
export type EventType = Schemas["EventType"];
export type TraceEntry = Schemas["TraceEntry"];
export type TraceKind = Schemas["TraceKind"];
export type UsageSum = Schemas["UsageSum"];
export type UsagePage = Schemas["UsagePage"];
export type Balance = Schemas["Balance"];
export type Budget = Schemas["Budget"];
export type BudgetAction = Schemas["BudgetAction"];
export type BudgetMode = Schemas["BudgetMode"];
export type LedgerEntry = Schemas["LedgerEntry"];
export type Webhook = Schemas["Webhook"];
export type WebhookWithSecret = Schemas["WebhookWithSecret"];
export type WebhookDelivery = Schemas["WebhookDelivery"];
export type DeliveryStatus = Schemas["DeliveryStatus"];
export type Permission = Schemas["Permission"];
export type ProjectPermission = Schemas["ProjectPermission"];
export type ErrorEnvelope = Schemas["ErrorEnvelope"];

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

export const RUN_STATUSES = [
  "queued",
  "running",
  "waiting",
  "paused",
  "compensating",
  "succeeded",
  "failed",
  "compensated",
  "cancelled",
  "stuck",
] as const satisfies readonly RunStatus[];

export const STUCK_CODES = [
  "lease_lost",
  "backoff",
  "project_limit",
  "waiting_signal",
  "waiting_timer",
  "paused_by_operator",
  "retries_exhausted",
  "undo_failed",
  "unknown_version",
  "waiting_for_run",
  "database_pressure",
  "crash_loop",
  "nondeterministic",
] as const satisfies readonly StuckCode[];

export const INSTANCE_STATUSES = [
  "requested",
  "deploying",
  "running",
  "upgrading",
  "rolling_back",
  "decommissioning",
  "decommissioned",
  "failed",
] as const satisfies readonly InstanceStatus[];

/** Those of which something is left: on a node, or for somebody to look at. */
export const LIVING_INSTANCES = INSTANCE_STATUSES.filter((status) => status !== "decommissioned");

export const TRUSTS = ["unverified", "verified", "failed_verification", "revoked"] as const satisfies readonly Trust[];

export const LIFECYCLES = ["published", "promoted", "deprecated", "retired"] as const satisfies readonly Lifecycle[];

export const ALLOCATION_STATUSES = [
  "requested",
  "provisioning",
  "active",
  "releasing",
  "released",
  "failed",
  "release_failed",
] as const satisfies readonly AllocationStatus[];

export const LIVING_ALLOCATIONS = ALLOCATION_STATUSES.filter((status) => status !== "released");

export const CHANNELS = ["dev", "test", "staging", "prod"] as const satisfies readonly Schemas["Channel"][];

export const TRACE_KINDS = [
  "request",
  "workflow",
  "step",
  "node_task",
  "event",
  "usage",
  "audit",
] as const satisfies readonly TraceKind[];

export const EVENT_TYPES = [
  "apps.instance.requested",
  "apps.instance.deploying",
  "apps.instance.running",
  "apps.instance.upgrade_requested",
  "apps.instance.upgraded",
  "apps.instance.rollback_requested",
  "apps.instance.rolled_back",
  "apps.instance.decommission_requested",
  "apps.instance.decommissioned",
  "apps.instance.failed",
  "apps.instance.reported",
  "apps.artifact.published",
  "apps.artifact.verified",
  "apps.artifact.verification_failed",
  "apps.artifact.promoted",
  "apps.artifact.deprecated",
  "apps.artifact.retired",
  "apps.artifact.revoked",
  "apps.version.registered",
  "apps.version.staged",
  "apps.version.canary_started",
  "apps.version.canary_halted",
  "apps.version.activated",
  "apps.version.deprecated",
  "apps.version.retired",
  "apps.entitlement.changed",
  "billing.low_balance",
  "billing.budget_exceeded",
  "billing.ledger_posted",
  "workflows.run_stuck",
  "nodes.lost",
] as const satisfies readonly EventType[];

export const PROJECT_PERMISSIONS = [
  "apps.catalog.read",
  "apps.manifest.submit",
  "apps.entitlement.read",
  "apps.entitlement.manage",
  "apps.instance.read",
  "apps.instance.create",
  "apps.instance.upgrade",
  "apps.instance.rollback",
  "apps.instance.delete",
  "apps.instance.operate",
  "apps.artifact.read",
  "apps.artifact.publish",
  "apps.artifact.promote",
  "apps.artifact.deprecate",
  "apps.artifact.retire",
  "apps.artifact.revoke",
  "apps.worker.operate",
  "workflows.read",
  "workflows.operate",
  "allocations.read",
  "iam.member.manage",
  "iam.service_account.read",
  "iam.service_account.manage",
  "iam.credential.read",
  "iam.credential.manage",
  "billing.usage.read",
  "billing.usage.write",
  "billing.budget.manage",
  "events.read",
  "webhooks.manage",
  "audit.read",
] as const satisfies readonly ProjectPermission[];

export const DELIVERY_STATUSES = ["pending", "delivered", "failed"] as const satisfies readonly DeliveryStatus[];
