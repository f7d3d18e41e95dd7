import { describe, expect, it } from "vitest";
import type { Attempt, RunDetail, Step } from "../api/types";
import { horizon, undoPreview, waterfall } from "./layout";

const START = Date.parse("2026-01-01T00:00:00Z");
const at = (ms: number) => new Date(START + ms).toISOString();

function attempt(from: number, to: number, outcome: Attempt["outcome"], undo = false, number = 1): Attempt {
  const times = { started_at: at(from), finished_at: at(to) };
  return { attempt: number, undo, outcome, error: null, worker: null, correlation_id: "c", trace_id: null, ...times };
}

function step(name: string, more: Partial<Step>): Step {
  const nothing = { input: null, output: null, error: null, worker: null, correlation_id: null, deadline_at: null };
  const base = {
    key: "",
    kind: "activity",
    state: "succeeded",
    seq: 1,
    undoable: false,
    attempt: 1,
    undo_attempt: 0,
  } as const;
  return { name, ...base, ...nothing, started_at: at(0), finished_at: at(10), attempts: [], ...more };
}

function run(steps: Step[], more: Partial<RunDetail> = {}): RunDetail {
  return { status: "running", created_at: at(0), finished_at: null, stuck_cause: null, steps, ...more } as RunDetail;
}

const only = (detail: RunDetail, now: number) => waterfall(detail, START + now, false).rows[0]?.bars ?? [];

describe("the bars of a step", () => {
  it("are its tries with the pauses between them", () => {
    const attempts = [attempt(0, 10, "retry"), attempt(40, 50, "succeeded", false, 2)];
    const bars = only(run([step("fetch", { attempts, finished_at: at(50) })]), 100);
    expect(bars.map((bar) => [bar.kind, bar.outcome, bar.from - START, bar.to - START])).toEqual([
      ["try", "retry", 0, 10],
      ["try", "succeeded", 40, 50],
      ["backoff", "done", 10, 40],
    ]);
  });

  it("grow to now while a try goes on", () => {
    const bars = only(run([step("fetch", { state: "running", finished_at: null })]), 70);
    expect(bars).toEqual([{ kind: "try", outcome: "live", number: 1, from: START, to: START + 70 }]);
  });

  it("show a pause, not a try, while the engine waits to try again", () => {
    const detail = run([step("fetch", { state: "running", finished_at: null, attempts: [attempt(0, 10, "retry")] })], {
      stuck_cause: { code: "backoff", detail: {}, next_action: "", next_at: at(90) },
    });
    expect(only(detail, 70).map((bar) => [bar.kind, bar.outcome])).toEqual([
      ["try", "retry"],
      ["backoff", "live"],
    ]);
  });

  it("are one wait for a timer or a signal, from start to end or now", () => {
    const waiting = step("go", { kind: "wait", state: "waiting", finished_at: null });
    expect(only(run([waiting]), 500)[0]).toMatchObject({ kind: "wait", outcome: "live", to: START + 500 });
    const slept = step("nap", { kind: "sleep", finished_at: at(20) });
    expect(only(run([slept]), 500)[0]).toMatchObject({ kind: "wait", outcome: "done", to: START + 20 });
  });

  it("show undoing apart from doing, done and under way", () => {
    const attempts = [attempt(0, 10, "succeeded"), attempt(30, 40, "retry", true)];
    const bars = only(run([step("hold", { state: "compensating", attempts })]), 60);
    expect(bars.map((bar) => [bar.kind, bar.outcome])).toEqual([
      ["try", "succeeded"],
      ["undo", "retry"],
      ["undo", "live"],
    ]);
  });

  it("come from the step itself once the history of its tries is gone", () => {
    const bars = only(run([step("old", { state: "failed", attempt: 3 })], { finished_at: at(10) }), 99);
    expect(bars).toMatchObject([{ kind: "try", outcome: "terminal", number: 3 }]);
  });
});

describe("a run", () => {
  it("counts the steps ahead in their order and gives them no bars", () => {
    const ahead = { state: "pending", seq: null, started_at: null, finished_at: null } as const;
    const drawn = waterfall(run([step("a", {}), step("b", ahead), step("c", ahead)]), START + 20, false);
    expect(drawn.rows.map((row) => [row.planned, row.bars.length])).toEqual([
      [null, 1],
      [0, 0],
      [1, 0],
    ]);
    expect(drawn.plannedCount).toBe(2);
  });

  it("ends where it ended, whatever the time is now", () => {
    const drawn = waterfall(run([step("a", {})], { finished_at: at(10) }), START + 1e9, false);
    expect(drawn.scale.to).toBe(START + 10);
  });

  it("says what a cancel takes back, last first, and what stays", () => {
    const steps = [
      step("reserve", { undoable: true }),
      step("fetch", {}),
      step("nap", { kind: "sleep" }),
      step("launch", { undoable: true, state: "ambiguous" }),
      step("later", { undoable: true, state: "pending" }),
    ];
    const { undone, stays } = undoPreview(run(steps));
    expect(undone.map((one) => one.name)).toEqual(["launch", "reserve"]);
    expect(stays.map((one) => one.name)).toEqual(["fetch"]);
  });
});

describe("the end of the axis", () => {
  const ends = (now: number) => horizon(run([]), START + now) - START;

  it("is ahead of the present, by little", () => {
    for (const now of [-5000, 0, 1, 999, 1000, 15_500, 61_234, 3_600_000, 86_400_000]) {
      expect(ends(now)).toBeGreaterThan(now);
      expect(ends(now)).toBeLessThanOrEqual(Math.max(1000, Math.max(0, now) * (1 + 1 / 16) + 1000));
    }
  });

  it("stands still while time goes on", () => {
    const hour = 3_600_000;
    const seen = new Set(Array.from({ length: 240 }, (_, quarter) => ends(hour + quarter * 250)));
    expect(seen.size).toBeLessThanOrEqual(2);
  });
});
