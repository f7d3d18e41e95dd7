// From the entries of a trace to marks on one time axis. Pure, so that what the picture claims can be tested without one.
import { TRACE_KINDS, type TraceEntry, type TraceKind } from "../api/types";
import { type Scale, timeScale } from "../waterfall/scale";

export interface Mark {
  entry: TraceEntry;
  id: string;
  from: number;
  /** The same moment for what has no length. */
  to: number;
  /** Whether it goes on still. */
  live: boolean;
  tone: "good" | "bad" | "going" | "undo";
  /** Parts of a run stand under it. */
  inside: boolean;
}

export interface Timeline {
  marks: Mark[];
  scale: Scale;
  live: boolean;
}

const GOING = ["queued", "running", "waiting", "compensating", "pending", "dispatched", "leased", "requested"];
const BAD = ["failed", "stuck", "denied", "refused", "expired", "ambiguous"];
const UNDONE = ["compensated", "compensating", "cancelled"];
/** Only these have a length; the others are moments. */
const LASTING: TraceKind[] = ["workflow", "step", "node_task"];

export function entryId(entry: TraceEntry): string {
  return `${entry.kind}:${entry.id}`;
}

export function timeline(entries: TraceEntry[], now: number, fold: boolean): Timeline {
  const runs = new Set(entries.filter((entry) => entry.kind === "workflow").map((entry) => entry.workflow_id));
  const marks = entries.map((entry) => markOf(entry, runs, now));
  const from = Math.min(now, ...marks.map((mark) => mark.from));
  const to = Math.max(from, ...marks.map((mark) => mark.to));
  // A run covers its waits too; what was really done inside it says what was busy.
  const busy = marks.filter((mark) => mark.entry.kind !== "workflow" && mark.entry.status !== "waiting");
  return { marks, scale: timeScale({ from, to }, busy, fold), live: marks.some((mark) => mark.live) };
}

function markOf(entry: TraceEntry, runs: Set<string | null | undefined>, now: number): Mark {
  const from = Date.parse(entry.at);
  const lasting = LASTING.includes(entry.kind);
  const live = lasting && !entry.finished_at && GOING.includes(entry.status ?? "");
  const to = entry.finished_at ? Date.parse(entry.finished_at) : live ? Math.max(now, from) : from;
  return { entry, id: entryId(entry), from, to, live, tone: toneOf(entry, live), inside: isInside(entry, runs) };
}

function isInside({ kind, workflow_id }: TraceEntry, runs: Set<string | null | undefined>): boolean {
  return (kind === "step" || kind === "node_task") && runs.has(workflow_id);
}

function toneOf({ status, code }: TraceEntry, live: boolean): Mark["tone"] {
  if (UNDONE.includes(status ?? "")) return "undo";
  if (BAD.includes(status ?? "") || (code && status !== "succeeded")) return "bad";
  return live ? "going" : "good";
}

/** How many of each kind there are, from the request to what was written of it. */
export function kindsOf(entries: TraceEntry[]): [TraceKind, number][] {
  const count = (kind: TraceKind) => entries.filter((entry) => entry.kind === kind).length;
  return TRACE_KINDS.map((kind): [TraceKind, number] => [kind, count(kind)]).filter(([, many]) => many > 0);
}
