import { describe, expect, it } from "vitest";
import type { TraceEntry } from "../api/types";
import { kindsOf, timeline } from "./timeline";

const AT = Date.parse("2026-03-01T12:00:00Z");
const time = (ms: number) => new Date(AT + ms).toISOString();

function entry(kind: TraceEntry["kind"], at: number, more: Partial<TraceEntry> = {}): TraceEntry {
  return { kind, id: `${kind}-${at}`, name: kind, at: time(at), ...more };
}

describe("the timeline of a trace", () => {
  it("draws what lasted as long as it did, and everything else as a moment", () => {
    const { marks, scale } = timeline(
      [
        entry("request", 0, { status: "succeeded" }),
        entry("workflow", 10, { workflow_id: "r", status: "succeeded", finished_at: time(1000) }),
        entry("step", 20, { workflow_id: "r", status: "succeeded", finished_at: time(900) }),
        entry("event", 1000),
      ],
      AT + 5000,
      false,
    );
    expect(marks.map((mark) => mark.to - mark.from)).toEqual([0, 990, 880, 0]);
    expect(marks.map((mark) => mark.inside)).toEqual([false, false, true, false]);
    expect([scale.from, scale.to]).toEqual([AT, AT + 1000]);
  });

  it("goes on while a run does", () => {
    const going = timeline([entry("workflow", 0, { workflow_id: "r", status: "waiting" })], AT + 7000, false);
    expect(going.live).toBe(true);
    expect(going.scale.to).toBe(AT + 7000);
    const over = timeline([entry("workflow", 0, { status: "failed", finished_at: time(10) })], AT + 7000, false);
    expect([over.live, over.marks[0]?.tone]).toEqual([false, "bad"]);
  });

  it("does not put a step under a run that is not told", () => {
    const { marks } = timeline([entry("step", 0, { workflow_id: "elsewhere" })], AT, false);
    expect(marks[0]?.inside).toBe(false);
  });

  it("counts the kinds that there are, the request first", () => {
    expect(kindsOf([entry("step", 0), entry("request", 1), entry("step", 2)])).toEqual([
      ["request", 1],
      ["step", 2],
    ]);
  });
});
