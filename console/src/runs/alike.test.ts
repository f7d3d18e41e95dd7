import { expect, test } from "vitest";
import type { Run, StuckCode } from "../api/types";
import { signaturesOf, wishOf } from "./alike";

function run(id: string, code: StuckCode, error: unknown, status: Run["status"] = "paused"): Run {
  return { id, kind: "instance.deploy", status, error, stuck_cause: { code } } as Run;
}

const pull = (registry: string) => ({ code: "image_pull_failed", message: `${registry} does not answer` });

test("runs with one code are alike, whatever else their errors say", () => {
  const runs = [
    run("1", "retries_exhausted", pull("one.example")),
    run("2", "retries_exhausted", { code: "node_lost", message: "gone" }),
    run("3", "retries_exhausted", pull("two.example")),
    run("4", "backoff", pull("one.example"), "running"),
  ];
  const [first, second, ...rest] = signaturesOf(runs);
  expect(first?.ids).toEqual(["1", "3"]);
  expect(second?.ids).toEqual(["2"]);
  expect(rest).toEqual([]);
});

test("what is counted together is asked for together", () => {
  const [alike] = signaturesOf([run("1", "retries_exhausted", pull("one.example"))]);
  const filter = { kind: "instance.deploy", cause: "retries_exhausted", error_signature: "image_pull_failed" };
  expect(alike && wishOf(alike, {})).toEqual({ filter });
  expect(alike && wishOf(alike, { project_id: "p" })).toEqual({ filter: { ...filter, project_id: "p" } });
});

test("runs without a code are named, lest others of their kind go on too", () => {
  const resting = [run("1", "paused_by_operator", null), run("2", "paused_by_operator", "a text of its own")];
  const [alike] = signaturesOf(resting);
  expect(alike && wishOf(alike, {})).toEqual({ ids: ["1", "2"] });
});

test("runs that failed have no cause any more, and are begun anew", () => {
  const failed = (id: string, status: Run["status"]) => ({
    ...run(id, "backoff", pull("one.example"), status),
    stuck_cause: null,
  });
  const [alike, ...rest] = signaturesOf([failed("1", "compensated"), failed("2", "failed"), failed("3", "cancelled")]);
  expect(alike?.ids).toEqual(["1", "2"]);
  expect(rest).toEqual([]);
  const filter = { kind: "instance.deploy", ended: true, error_signature: "image_pull_failed" };
  expect(alike && wishOf(alike, {})).toEqual({ filter });
});
