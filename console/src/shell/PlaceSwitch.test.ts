import { expect, test } from "vitest";
import { keptIn } from "./PlaceSwitch";

test("a filter that means the same elsewhere is kept, and the name of something of this place is not", () => {
  const search = { status: "failed", since: "24h", project_id: "one", subject: "app_instance:7", step: "fetch" };
  expect(keptIn({ isPlatform: false }, search)).toEqual({ status: "failed", since: "24h" });
  expect(keptIn({ isPlatform: true }, search)).toEqual({ status: "failed", since: "24h", project_id: "one" });
});
