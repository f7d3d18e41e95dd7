import { describe, expect, it } from "vitest";
import type { UsageSum } from "../api/types";
import { ceiling, drawn, OTHERS, windows } from "./sums";

const HOUR = 3_600_000;
const FROM = Date.parse("2026-03-01T10:00:00Z");

function sum(hour: number, app: string, amount: number): UsageSum {
  const start = new Date(FROM + hour * HOUR).toISOString();
  return {
    window_start: start,
    window_end: start,
    quantities: { requests: amount * 10 },
    amount_minor: amount,
    currency: "EUR",
    rated: true,
    app_slug: app,
  };
}

describe("the chart of usage", () => {
  it("has a column for every window, also where nothing was used", () => {
    const chart = drawn([sum(0, "a", 3), sum(2, "b", 4)], "cost", "app_slug", "hour", FROM, FROM + 3 * HOUR);
    expect(chart.columns.map((column) => column.total)).toEqual([3, 0, 4, 0]);
    expect(chart.groups).toEqual([
      { id: "b", total: 4 },
      { id: "a", total: 3 },
    ]);
    expect([chart.most, chart.total]).toEqual([4, 7]);
  });

  it("draws a unit as well as the cost", () => {
    const chart = drawn([sum(0, "a", 3)], "requests", "app_slug", "hour", FROM, FROM);
    expect(chart.columns[0]?.parts).toEqual([30]);
  });

  it("lets small groups share a colour and loses none of them", () => {
    const many = Array.from({ length: 9 }, (_, at) => sum(0, `app-${at}`, at + 1));
    const chart = drawn(many, "cost", "app_slug", "hour", FROM, FROM);
    expect(chart.groups).toHaveLength(6);
    expect(chart.groups.at(-1)).toEqual({ id: OTHERS, total: 1 + 2 + 3 + 4 });
    expect(chart.columns[0]?.parts.reduce((all, part) => all + part, 0)).toBe(45);
  });

  it("knows that months are not of one length", () => {
    const starts = windows(Date.parse("2026-01-15T00:00:00Z"), Date.parse("2026-03-02T00:00:00Z"), "month");
    expect(starts.map((start) => new Date(start).toISOString().slice(0, 10))).toEqual([
      "2026-01-01",
      "2026-02-01",
      "2026-03-01",
    ]);
  });

  it("ends at a round number", () => {
    expect([ceiling(0), ceiling(7), ceiling(130), ceiling(2000)]).toEqual([1, 8, 150, 2000]);
  });
});
