import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ApiError } from "../api/client";
import { keepOpen } from "./keepOpen";

class FakeSource {
  static CLOSED = 2;
  static opened: FakeSource[] = [];
  readyState = 0;
  onopen = () => {};
  onerror = () => {};
  constructor(readonly url: string) {
    FakeSource.opened.push(this);
  }
  close() {
    this.readyState = 2;
  }
  refuse() {
    this.readyState = 2;
    this.onerror();
  }
}

const last = () => FakeSource.opened.at(-1) as FakeSource;
const count = () => FakeSource.opened.length;

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", FakeSource);
  FakeSource.opened = [];
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function kept(reason: unknown) {
  const told: string[] = [];
  const close = keepOpen("/stream", {
    listen: () => told.push("listen"),
    onLive: () => told.push("live"),
    onLost: () => told.push("lost"),
    why: async () => reason,
    onRefused: (_, again) => told.push(again ? "again" : "for good"),
  });
  return { told, close };
}

test("a stream that broke is left to the browser", async () => {
  const { told } = kept(null);
  last().onopen();
  last().onerror();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(told).toEqual(["listen", "live", "lost"]);
  expect(count()).toBe(1);
});

test("a stream that was refused is opened again, each time after a longer pause, and soon again once it was heard", async () => {
  const { told } = kept(null);
  const pauses: number[] = [];
  for (let time = 0; time < 7; time++) {
    const before = count();
    last().refuse();
    let waited = 0;
    while (count() === before) {
      await vi.advanceTimersByTimeAsync(500);
      waited += 500;
    }
    pauses.push(waited);
  }
  expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  last().onopen();
  last().refuse();
  await vi.advanceTimersByTimeAsync(1000);
  expect(count()).toBe(9);
  expect(told.filter((word) => word === "again")).toHaveLength(8);
});

test.each([0, 409, 429, 500, 503])("what was refused by %i passes, and is asked for again", async (status) => {
  kept(new ApiError(status, "code", "message", null));
  last().refuse();
  await vi.advanceTimersByTimeAsync(1000);
  expect(count()).toBe(2);
});

test.each([400, 401, 403, 404])("what was refused by %i is not asked for again", async (status) => {
  const { told } = kept(new ApiError(status, "code", "message", null));
  last().refuse();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(count()).toBe(1);
  expect(told.at(-1)).toBe("for good");
});

test("whoever leaves opens nothing more", async () => {
  const { close } = kept(null);
  last().refuse();
  close();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(count()).toBe(1);
});
