// What makes runs alike: their kind, why they rest or that they failed, and the code of their error. By the same the server is
// asked to retry them, so that what is counted together is what goes on together.
import type { BulkRetry, Run, StuckCode } from "../api/types";
import { errorText } from "./RunTable";

export interface Signature {
  kind: string;
  /** Nothing where they have ended. */
  cause: StuckCode | null;
  code: string | null;
  /** The error of one of them. */
  example: string | null;
  ids: string[];
}

const RESTING = new Set<Run["status"]>(["paused", "stuck"]);
const FAILED = new Set<Run["status"]>(["failed", "compensated"]);

/** The most that are retried by name. */
const MOST = 200;

export function signaturesOf(runs: Run[]): Signature[] {
  const found = new Map<string, Signature>();
  for (const { id, kind, status, stuck_cause, error } of runs) {
    if (!RESTING.has(status) && !FAILED.has(status)) continue;
    const cause = stuck_cause?.code ?? null;
    if (RESTING.has(status) && !cause) continue;
    const code = codeOf(error);
    const key = JSON.stringify([kind, cause, code]);
    const known = found.get(key);
    if (known) known.ids.push(id);
    else found.set(key, { kind, cause, code, example: error ? errorText(error) : null, ids: [id] });
  }
  return [...found.values()].sort((one, other) => other.ids.length - one.ids.length);
}

/** The shortest text that the server looks for has three letters. */
function codeOf(error: unknown): string | null {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : null;
  return typeof code === "string" && code.length >= 3 ? code : null;
}

/** What the list is narrowed to, as the server is asked for it. */
export interface Narrowed {
  project_id?: string;
  since?: string;
}

/** Without a code nothing tells them from others of their kind, so they are named. */
export function wishOf({ kind, cause, code, ids }: Signature, narrowed: Narrowed): BulkRetry {
  if (code === null) return { ids: ids.slice(0, MOST) };
  return { filter: { kind, ...(cause ? { cause } : { ended: true }), error_signature: code, ...narrowed } };
}
