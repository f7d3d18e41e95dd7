import { describe, expect, it } from "vitest";
import type { UsageSum } from "../api/types";
import { asCsv, usageCommand } from "./exports";

const HOUR = { window_start: "2026-01-01T00:00:00Z", window_end: "2026-01-01T01:00:00Z" };
const sum = (of: Partial<UsageSum>): UsageSum => ({
  ...HOUR,
  quantities: {},
  amount_minor: 0,
  currency: null,
  rated: true,
  ...of,
});

describe("usage as a table", () => {
  it("has a column for each unit, also where a sum has none of it", () => {
    const sums = [
      sum({ app_slug: "hello", quantities: { requests: 7 }, amount_minor: 14, currency: "EUR" }),
      sum({ quantities: { gpu_seconds: 3600 }, rated: false }),
    ];
    expect(asCsv(sums, "app_slug").split("\r\n")).toEqual([
      "window_start,window_end,app_slug,gpu_seconds,requests,amount_minor,currency,rated",
      "2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,hello,,7,14,EUR,true",
      "2026-01-01T00:00:00Z,2026-01-01T01:00:00Z,,3600,,0,,false",
      "",
    ]);
  });

  it("holds no formula and no line that breaks", () => {
    const [, line] = asCsv([sum({ app_slug: '=1,"2"' })], "app_slug").split("\r\n");
    expect(line).toContain(`,"'=1,""2""",`);
  });
});

describe("usage as a command", () => {
  it("asks for the same time", () => {
    expect(usageCommand({ window: "hour", by: "app_slug", from: HOUR.window_start })).toBe(
      "gpuaas usage --window hour --by app_slug --from 2026-01-01T00:00:00Z",
    );
    expect(usageCommand({ window: "day", from: HOUR.window_start, instance: "front-desk" })).toBe(
      "gpuaas usage front-desk --window day --from 2026-01-01T00:00:00Z",
    );
  });
});
