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
export type Permission = Schemas["Permission"];
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
