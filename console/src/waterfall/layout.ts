// From a run to bars on one time axis: every try, wait, pause between tries and undo of every step. Pure, so that what a
// picture claims can be tested without one.
import type { Attempt, RunDetail, Step } from "../api/types";
import { type Scale, type Span, timeScale } from "./scale";

export type BarKind = "try" | "undo" | "wait" | "backoff";

export interface Bar extends Span {
  kind: BarKind;
  /** How the try ended; `live` while it goes on. */
  outcome: Attempt["outcome"] | "live" | "done";
  /** Which try this is, of its direction. */
  number: number;
}

/** How a bar ended, as far as it can be seen. */
export function lookOf(bar: Bar): "good" | "bad" | "going" {
  if (bar.outcome === "live") return "going";
  return ["done", "succeeded", "found_done"].includes(bar.outcome) ? "good" : "bad";
}

export interface Row {
  step: Step;
  id: string;
  bars: Bar[];
  /** Whether one of its bars still grows. */
  live: boolean;
  /** Its position among the steps that are only planned; null once it was reached. */
  planned: number | null;
}

export interface Waterfall {
  rows: Row[];
  scale: Scale;
  plannedCount: number;
}

export function stepId(step: Pick<Step, "name" | "key">): string {
  return step.key ? `${step.name}/${step.key}` : step.name;
}

/**
 * The end of the axis while a run goes on: a little ahead of the present, by a sixteenth of what has passed at most. So the
 * picture stands still for a while, and only what is live moves in it.
 */
export function horizon(run: Pick<RunDetail, "created_at">, now: number): number {
  const from = Date.parse(run.created_at);
  const passed = Math.max(0, now - from);
  const stride = Math.max(SHORTEST_STRIDE, 2 ** Math.floor(Math.log2(Math.max(1, passed)) - 4));
  return from + (Math.floor(passed / stride) + 1) * stride;
}

const SHORTEST_STRIDE = 1000;

/** What goes on is drawn as far as `until`. */
export function waterfall(run: RunDetail, until: number, fold: boolean): Waterfall {
  let planned = 0;
  const rows = run.steps.map((step): Row => {
    const bars = barsOf(step, run, until);
    const ahead = step.state === "pending" && bars.length === 0;
    const live = bars.some((bar) => bar.outcome === "live");
    return { step, id: stepId(step), bars, live, planned: ahead ? planned++ : null };
  });
  const bars = rows.flatMap((row) => row.bars);
  const ended = run.finished_at ? Date.parse(run.finished_at) : until;
  const whole = { from: Date.parse(run.created_at), to: bars.reduce((last, bar) => Math.max(last, bar.to), ended) };
  const busy = bars.filter((bar) => bar.kind === "try" || bar.kind === "undo");
  return { rows, scale: timeScale(whole, busy, fold), plannedCount: planned };
}

function barsOf(step: Step, run: RunDetail, now: number): Bar[] {
  if (!step.started_at) return [];
  const waits = step.kind === "sleep" || step.kind === "wait" || step.kind === "child";
  const tries = step.attempts.map(toBar);
  const forward = tries.filter((bar) => bar.kind === "try");
  const undos = tries.filter((bar) => bar.kind === "undo");
  const bars = waits ? waiting(step, now) : [...forward, ...pauses(forward), ...underWay(step, run, forward, now)];
  return [...bars, ...undos, ...pauses(undos), ...undoing(step, bars, undos, now)];
}

function toBar(attempt: Attempt): Bar {
  return {
    kind: attempt.undo ? "undo" : "try",
    outcome: attempt.outcome,
    number: attempt.attempt,
    from: Date.parse(attempt.started_at),
    to: Date.parse(attempt.finished_at),
  };
}

/** A timer, a signal or another run: one long breath, not a try. */
function waiting(step: Step, now: number): Bar[] {
  const from = Date.parse(step.started_at ?? "");
  const live = step.state === "waiting" || step.state === "running";
  const to = step.finished_at ? Date.parse(step.finished_at) : live ? now : from;
  const ended = step.state === "failed" ? "terminal" : "done";
  return [{ kind: "wait", outcome: live && !step.finished_at ? "live" : ended, number: 1, from, to }];
}

/** Between two tries the engine waits on purpose. */
function pauses(tries: Bar[]): Bar[] {
  return tries.slice(1).flatMap((next, at) => {
    const before = tries[at];
    if (!before || next.from <= before.to) return [];
    return [{ kind: "backoff", outcome: "done", number: next.number, from: before.to, to: next.from }];
  });
}

/** The try that has not ended, or the pause before the next one. History holds only what is over. */
function underWay(step: Step, run: RunDetail, tries: Bar[], now: number): Bar[] {
  const last = tries.at(-1);
  const began = Date.parse(step.started_at ?? "");
  if (step.state !== "running" && step.state !== "waiting") {
    if (last || !step.finished_at) return [];
    // Older than the history of tries: the step's own times are what is left.
    const outcome = step.state === "failed" ? "terminal" : "succeeded";
    return [{ kind: "try", outcome, number: step.attempt, from: began, to: Date.parse(step.finished_at) }];
  }
  if (run.finished_at) return [];
  const resting = run.stuck_cause?.code === "backoff" || step.state === "waiting" || run.status === "paused";
  const kind = resting && last ? "backoff" : "try";
  return [
    { kind, outcome: "live", number: tries.length + 1, from: last?.to ?? began, to: Math.max(now, last?.to ?? began) },
  ];
}

function undoing(step: Step, forward: Bar[], undos: Bar[], now: number): Bar[] {
  if (step.state !== "compensating") return [];
  const from = undos.at(-1)?.to ?? forward.at(-1)?.to;
  return from === undefined
    ? []
    : [{ kind: "undo", outcome: "live", number: undos.length + 1, from, to: Math.max(now, from) }];
}

/** What a cancel takes back, in the order it is taken back, and what stays because it has no undo. */
export function undoPreview(run: RunDetail): { undone: Step[]; stays: Step[] } {
  const happened = run.steps.filter((step) => ["succeeded", "ambiguous", "running", "failed"].includes(step.state));
  const effects = happened.filter((step) => step.kind === "activity" || step.kind === "transact");
  return {
    undone: effects.filter((step) => step.undoable).reverse(),
    stays: effects.filter((step) => !step.undoable && step.state === "succeeded"),
  };
}
