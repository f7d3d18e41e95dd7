// A viewer's way: everything can be seen and nothing can be done, in the console and behind it.
import assert from "node:assert/strict";
import { at, forgive, noComplaints, openRun, PLACE, row, signedIn, withBrowser } from "./browser.mjs";
import { fill, receiving } from "./filled.mjs";

/** Whatever changes something, on any page. */
const CHANGES = new RegExp(
  `^(${[
    ["Pause", "Resume", "Cancel", "Retry", "Retry all alike", "Update", "Run now"],
    ["Deploy", "Upgrade", "Roll back", "Decommission"],
    ["Entitle the project", "Switch off", "Narrow", "Approve", "Reject"],
    ["Stage", "Start canary", "Widen canary", "Publish", "Deprecate", "Retire"],
    ["Verify", "Promote", "Revoke", "Add a key"],
    ["New service account", "Rotate key", "Disable", "Enable", "Delete", "Add a member", "Remove"],
    ["New webhook", "Change", "Rotate secret", "Send again", "Send all again"],
    ["New allocation", "Release", "Add a node", "Drain", "Activate", "Set the budget"],
  ]
    .flat()
    .join("|")})$`,
);

await withBrowser(async (browser) => {
  const receiver = await receiving();
  const filled = await fill(await signedIn(browser, "admin"), receiver);
  const page = await signedIn(browser, "viewer");
  await page.getByRole("link", { name: /demo\.tour/ }).first().waitFor();
  const places = await page.locator(".place option").allInnerTexts();
  assert.deepEqual(places, ["example"], "a viewer of one project sees one place");
  const rail = await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts();
  assert.ok(!["Schedules", "Members", "Nodes"].some((name) => rail.includes(name)), rail.join());

  await page.goto(at("P/runs?correlation_id=demo-tour-clock"));
  await openRun(page, "demo-tour-clock");
  await nothingToDo(page);
  for (const [path, shown] of seenBy(page, filled)) {
    await page.goto(at(path));
    await shown.waitFor();
    await nothingToDo(page);
  }
  noComplaints(page);
  await refused(page);
  await page.goto(at("platform/runs"));
  await page.getByRole("heading", { name: "There is nothing for you here" }).waitFor();
  receiver.end();
});

function seenBy(page, { instance, webhook, artifact }) {
  return [
    ["P/runs?view=stuck", row(page, "demo.tour").first()],
    ["P/service-accounts", row(page, "night-watch")],
    ["P/instances", row(page, "front-desk")],
    [`P/instances/${instance}`, row(page, "ssh -N -L")],
    ["P/allocations", row(page, "active")],
    ["P/artifacts", row(page, "hello 1.0.0")],
    [`P/artifacts/${artifact}`, row(page, "the registry has the bytes")],
    ["P/artifacts?view=keys", row(page, "release-key")],
    ["P/usage", page.getByRole("region", { name: "Budget" })],
    ["P/usage?view=ledger", row(page, "credit")],
    ["P/webhooks", row(page, "Pager of the night shift")],
    [`P/webhooks/${webhook}`, row(page, "apps.instance.running").getByText("delivered").first()],
    [`P/webhooks/${webhook}?status=failed`, page.getByText("Nothing was given up on")],
    ["P/events", row(page, "apps.instance.running").first()],
    ["P/audit", row(page, "create webhook").first()],
    ["P/trace?correlation_id=demo-tour-clock", page.getByRole("button", { name: /^run demo\.tour/ }).first()],
    ["P/catalog", page.getByRole("link", { name: /Hello/ }).first()],
    ["P/catalog?view=reviews", row(page, "hello 1.9.0")],
    ["P/catalog/hello", page.getByRole("region", { name: "Entitlement" })],
    ["P/catalog/hello/1.0.0", page.getByRole("heading", { name: "What comes next" })],
    ["P/catalog/hello/1.0.0/deploy", page.getByText("You may look, but not deploy")],
    ["P/members", page.getByText("This is not yours to see")],
  ];
}

async function nothingToDo(page) {
  const found = page.getByRole("button", { name: CHANGES }).or(page.getByRole("link", { name: CHANGES }));
  assert.deepEqual(await found.allInnerTexts(), [], page.url());
}

/** The console hides what is refused; the refusal itself is the API's. */
async function refused(page) {
  const answers = await page.evaluate(async (project) => {
    const { session } = await (await fetch("/console/session")).json();
    const runs = await (await fetch(`/api/v1/projects/${project}/workflows?correlation_id=demo-tour-clock`)).json();
    const cancel = (headers) =>
      fetch(`/api/v1/projects/${project}/workflows/${runs.items[0].id}/cancel`, { method: "POST", headers });
    const [with_token, without] = [await cancel({ "x-csrf-token": session.csrf_token }), await cancel({})];
    return [with_token.status, (await with_token.json()).code, without.status];
  }, PLACE);
  assert.deepEqual(answers, [403, "insufficient_permissions", 401]);
  forgive(page, 403);
  forgive(page, 401);
}
