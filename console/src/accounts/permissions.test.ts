import { expect, test } from "vitest";
import { PROJECT_PERMISSIONS } from "../api/types";
import { isUsual, offered } from "./permissions";

test("a service account is offered what its maker holds, and nothing of the platform", () => {
  expect(offered(new Set(["audit.read", "nodes.manage", "apps.instance.read"]))).toEqual([
    "apps.instance.read",
    "audit.read",
  ]);
});

test("the usual choice is the server's own", () => {
  const usual = PROJECT_PERMISSIONS.filter(isUsual);
  expect(usual).toContain("apps.instance.create");
  expect(usual).toContain("workflows.read");
  expect(usual).not.toContain("iam.member.manage");
  expect(usual).not.toContain("workflows.operate");
});
