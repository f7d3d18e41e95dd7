// A viewer's way: everything can be seen and nothing can be done, in the console and behind it.
import assert from "node:assert/strict";
import { at, listOr, noComplaints, openRun, PLACE, signedIn, withBrowser } from "./browser.mjs";

const CHANGES =
  /^(Pause|Resume|Cancel|Retry|Remove|Rotate key|Disable|Decommission|Entitle the project|Narrow|Verify|Revoke|Add a key|New service account|Release|Stage|Start canary|Widen canary|Publish|Promote|Retire|Send again|New allocation|New webhook|Set the budget)$/;

await withBrowser(async (browser) => {
  const page = await signedIn(browser, "viewer");
  await page.getByRole("link", { name: /demo\.tour/ }).first().waitFor();
  const places = await page.locator(".place option").allInnerTexts();
  assert.deepEqual(places, ["example"], "a viewer of one project sees one place");
  const rail = await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts();
  assert.ok(!["Schedules", "Members", "Nodes"].some((name) => rail.includes(name)), rail.join());

  await page.goto(at("P/runs?correlation_id=demo-tour-clock"));
  await openRun(page, "demo-tour-clock");
  await nothingToDo(page);
  for (const [path, shown] of [
    ["P/service-accounts", listOr(page, "Service accounts", "No service accounts yet")],
    ["P/instances", listOr(page, "Instances", "Nothing runs here yet")],
    ["P/allocations", page.getByRole("row").filter({ hasText: "active" })],
    ["P/artifacts?view=keys", listOr(page, "Signing keys", "No signing key")],
    ["P/usage", page.getByRole("region", { name: "Budget" })],
    ["P/webhooks", listOr(page, "Webhooks", "Nothing is sent anywhere yet")],
    ["P/events", listOr(page, "Events", "Nothing was told")],
    ["P/trace?correlation_id=demo-tour-clock", page.getByRole("button", { name: /^run demo\.tour/ }).first()],
    ["P/catalog/hello", page.getByRole("region", { name: "Entitlement" })],
    ["P/catalog/hello/1.0.0", page.getByRole("heading", { name: "What comes next" })],
  ]) {
    await page.goto(at(path));
    await shown.waitFor();
    await nothingToDo(page);
  }
  noComplaints(page);

  // The console hides what is refused; the refusal itself is the API's.
  const answers = await page.evaluate(async (project) => {
    const { session } = await (await fetch("/console/session")).json();
    const runs = await (await fetch(`/api/v1/projects/${project}/workflows?correlation_id=demo-tour-clock`)).json();
    const cancel = (headers) =>
      fetch(`/api/v1/projects/${project}/workflows/${runs.items[0].id}/cancel`, { method: "POST", headers });
    const [with_token, without] = [await cancel({ "x-csrf-token": session.csrf_token }), await cancel({})];
    return [with_token.status, (await with_token.json()).code, without.status];
  }, PLACE);
  assert.deepEqual(answers, [403, "insufficient_permissions", 401]);

  await page.goto(at("platform/runs"));
  await page.getByRole("heading", { name: "There is nothing for you here" }).waitFor();
});

async function nothingToDo(page) {
  assert.equal(await page.getByRole("button", { name: CHANGES }).count(), 0, page.url());
}
