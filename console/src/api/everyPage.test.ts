import { afterEach, describe, expect, it, vi } from "vitest";
import { everyPage } from "./everyPage";

/** A server that has so many things, and gives them in pages. */
function serverOf(count: number) {
  const asked = vi.fn(async (url: string) => {
    const query = new URL(url, "http://server").searchParams;
    const from = Number(query.get("cursor") ?? 0);
    const end = Math.min(count, from + Number(query.get("limit")));
    const items = Array.from({ length: end - from }, (_, at) => from + at);
    return Response.json({ items, next_cursor: end < count ? String(end) : null });
  });
  vi.stubGlobal("fetch", asked);
  return asked;
}

afterEach(() => vi.unstubAllGlobals());

describe("every page of a list", () => {
  it("is the whole of it", async () => {
    const server = serverOf(450);
    const { items, more } = await everyPage<number>("/things", { status: "active" });
    expect([items.length, items.at(-1), more]).toEqual([450, 449, false]);
    expect(server.mock.calls.map(([url]) => url)).toEqual([
      "/api/v1/things?status=active&limit=200",
      "/api/v1/things?status=active&limit=200&cursor=200",
      "/api/v1/things?status=active&limit=200&cursor=400",
    ]);
  });

  it("ends at a bound, and says that there is more", async () => {
    serverOf(10_000);
    const { items, more } = await everyPage<number>("/things", {}, undefined, 400);
    expect([items.length, more]).toEqual([400, true]);
  });
});
