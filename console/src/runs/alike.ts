// What makes runs alike: their kind, why they rest, and the code of their error. By the same the server is asked to retry
// them, so that what is counted together is what goes on together.
import type { BulkRetry, Run, StuckCode } from "../api/types";
import { errorText } from "./RunTable";

export interface Signature {
  kind: string;
  cause: StuckCode;
  code: string | null;
  /** The error of one of them. */
  example: string | null;
  ids: string[];
}

/** The most that are retried by name. */
const MOST = 200;

export function signaturesOf(runs: Run[]): Signature[] {
  const found = new Map<string, Signature>();
  for (const run of runs) {
    if (!run.stuck_cause || (run.status !== "paused" && run.status !== "stuck")) continue;
    const { kind, stuck_cause, error } = run;
    const code = codeOf(error);
    const key = JSON.stringify([kind, stuck_cause.code, code]);
    const known = found.get(key);
    if (known) known.ids.push(run.id);
    else
      found.set(key, { kind, cause: stuck_cause.code, code, example: error ? errorText(error) : null, ids: [run.id] });
  }
  return [...found.values()].sort((one, other) => other.ids.length - one.ids.length);
}

/** The shortest text that the server looks for has three letters. */
function codeOf(error: unknown): string | null {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : null;
  return typeof code === "string" && code.length >= 3 ? code : null;
}

/** Without a code nothing tells them from others of their kind, so they are named. */
export function wishOf({ kind, cause, code, ids }: Signature, project: string | undefined): BulkRetry {
  if (code === null) return { ids: ids.slice(0, MOST) };
  return { filter: { kind, cause, error_signature: code, ...(project ? { project_id: project } : {}) } };
}
