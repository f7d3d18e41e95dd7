// The life of an instance: deployed from the form on a node that cannot fetch its image, undone, understood, repaired and
// retried while the steps are drawn; upgraded, rolled back and ended; read in its logs, events and usage; and found again as
// a whole by its correlation id. A viewer sees all of it and can do nothing. The node obeys words on stdout.
import assert from "node:assert/strict";
import { accessible, ask, at, fits, forgive, HAND, node, noComplaints, PLACE, picture, row, signedIn, state, withBrowser } from "./browser.mjs";
import { spend } from "./filled.mjs";

await withBrowser(async (browser) => {
  const page = await signedIn(browser, "operator");
  await node("fail");
  await deploy(page);
  await broken(page);
  const instance = await understood(page);
  await repaired(page);
  await running(page, instance);
  await changed(page, instance, "Upgrade", "1.1.0");
  await changed(page, instance, "Roll back", "1.0.0");
  await told(page, instance);
  await used(browser, instance);
  const viewer = await signedIn(browser, "viewer");
  await onlyLooks(viewer, instance);
  const correlationId = await ended(page, instance);
  await found(page, correlationId);
  noComplaints(page);
  noComplaints(viewer);
});

/** From the catalog to the form that the version's schema makes, with the plan first. */
async function deploy(page) {
  await page.getByRole("link", { name: "Catalog" }).click();
  await page.getByRole("link", { name: /Hello/ }).first().click();
  await page.getByRole("link", { name: "1.0.0" }).first().click();
  await page.getByRole("link", { name: "Deploy" }).first().click();
  await page.getByLabel("Name").fill("front-desk");
  const room = await page.getByLabel("Allocation").locator("option", { hasText: "8 cores, 64 GiB" }).getAttribute("value");
  await page.getByLabel("Allocation").selectOption(room);
  await page.getByLabel("Greeting").fill("Welcome");
  await page.getByRole("button", { name: "Show the plan" }).click();
  const plan = page.getByRole("region", { name: "Plan" });
  await plan.getByText("reserve_placement").waitFor();
  await accessible(page, "the form with its plan");
  await page.getByRole("button", { name: "Deploy", exact: true }).click();
  await page.getByRole("heading", { name: "instance.deploy" }).waitFor();
}

/** The run breaks, says why, and takes back what it did, in sight. */
async function broken(page) {
  await state(page, "compensated");
  const cause = page.getByRole("region", { name: "What stopped the run" });
  await cause.getByText(/image_pull_failed/).waitFor();
  await page.locator(".bar.undo").first().waitFor({ state: "attached" });
  await page.getByRole("button", { name: /reserve_placement\s*compensated/ }).waitFor();
  await accessible(page, "a deployment that was undone");
}

/** The instance tells the cause, who must act, and what to do. */
async function understood(page) {
  await page.getByRole("link", { name: /^app_instance:/ }).click();
  await page.getByRole("heading", { name: "front-desk" }).waitFor();
  await state(page, "failed");
  const why = page.getByRole("region", { name: "Why" });
  await why.getByText("Somebody has to act.").waitFor();
  await why.getByText("image pull failed", { exact: true }).waitFor();
  await why.getByText(/every try gets a credential of its own/).waitFor();
  await accessible(page, "an instance that failed");
  await picture(page, "failed");
  return new URL(page.url()).pathname.split("/").at(-1);
}

/** Retried: what is done, what is under way and what lies ahead are drawn while it happens, without a page loaded again. */
async function repaired(page) {
  const loads = { count: 0 };
  page.on("request", (request) => {
    if (request.isNavigationRequest()) loads.count += 1;
  });
  await node("hang");
  await ask(page, "Retry");
  await page.getByRole("heading", { name: "instance.deploy" }).waitFor();
  await page.locator(".facts").getByText("live").waitFor();
  await page.locator(".bar.wait.going").waitFor({ state: "attached" });
  await page.locator(".bar.planned").first().waitFor({ state: "attached" });
  const cause = page.getByRole("region", { name: "Why the run does not advance" });
  await cause.getByText("waiting_signal").waitFor();
  await node("release");
  await state(page, "succeeded");
  assert.equal(await page.locator(".bar.planned").count(), 0, "nothing lies ahead of a run that is over");
  assert.equal(loads.count, 0, "no page was loaded again");
}

async function running(page, instance) {
  await page.goto(at(`P/instances/${instance}`));
  await state(page, "running");
  await row(page, "ssh -N -L").waitFor();
  await page.getByRole("table", { name: "Members" }).getByText("running").waitFor();
  await accessible(page, "an instance that runs");
  await fits(page, "an instance that runs");
}

/** With its plan shown first; the page goes on to watch the run. */
async function changed(page, instance, action, version) {
  await page.goto(at(`P/instances/${instance}`));
  await state(page, "running");
  await page.getByRole("button", { name: action, exact: true }).click();
  const dialog = page.getByRole("dialog");
  if (action === "Upgrade") await dialog.getByLabel(/Version/).selectOption(version);
  await dialog.getByRole("region", { name: "Plan" }).getByText(/until the new one is healthy/).waitFor();
  await accessible(page, `the question of ${action}`);
  await dialog.getByRole("button", { name: action, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("heading", { name: /^instance\.(upgrade|rollback)$/ }).waitFor();
  await state(page, "succeeded");
  await page.goto(at(`P/instances/${instance}`));
  await page.locator(".facts").getByText(`hello ${version}`).waitFor();
}

/** What it wrote and what was told of it. */
async function told(page, instance) {
  await page.goto(at(`P/instances/${instance}`));
  await page.getByRole("table", { name: "Runs" }).getByText("instance.rollback").waitFor();
  await page.getByRole("link", { name: "Logs" }).click();
  await page.getByRole("log").getByText("simulated, so nothing runs").waitFor();
  await page.locator(".logs").getByText("live", { exact: true }).waitFor();
  await accessible(page, "its logs");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.locator(".logs").getByText("paused").waitFor();
  await page.getByRole("button", { name: "Follow" }).click();
  await page.locator(".logs").getByText("live", { exact: true }).waitFor();
  await page.getByRole("main").getByRole("link", { name: "Events" }).click();
  for (const type of ["requested", "failed", "running", "upgraded", "rolled_back"]) {
    await row(page, `apps.instance.${type}`).first().waitFor();
  }
  await row(page, "apps.instance.failed").getByRole("button").click();
  await page.getByText('"specversion": "1.0"').waitFor();
  await accessible(page, "its events");
  await page.getByRole("main").getByRole("link", { name: "Values" }).click();
  await page.getByText('"greeting": "Welcome"').waitFor();
  await accessible(page, "its values");
}

/** An app tells what it was used for; with prices that is money, drawn by the hour. */
async function used(browser, instance) {
  const page = await signedIn(browser, "admin");
  await spend(page, instance);
  await page.goto(at(`P/instances/${instance}?view=usage`));
  await page.getByRole("region", { name: "Chart" }).waitFor();
  await accessible(page, "its usage");
  await page.goto(at("P/usage?window=hour&of=requests"));
  await page.getByRole("region", { name: "Chart" }).getByRole("heading", { name: "Requests" }).waitFor();
  await page.getByRole("table", { name: "Usage" }).getByText("hello").waitFor();
  await accessible(page, "usage");
  await fits(page, "usage");
  const bars = await page.locator(".chart-columns .part-of").evaluateAll((parts) => parts.filter((part) => part.clientHeight > 0).length);
  assert.ok(bars >= 20, `${bars} columns are drawn`);
  const [csv] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).click()]);
  assert.equal(csv.suggestedFilename(), "usage.csv");
  await picture(page, "usage");
  noComplaints(page);

  const hand = await signedIn(browser, "operator", { viewport: HAND });
  for (const path of [`P/instances/${instance}`, `P/instances/${instance}?view=usage`, "P/usage?window=hour&of=requests"]) {
    await hand.goto(at(path));
    await hand.getByRole("region", { name: /^(Chart|Access)$/ }).waitFor();
    await accessible(hand, `${path} in a hand`);
    await fits(hand, `${path} in a hand`);
    await picture(hand, path.includes("view=") ? "" : path.includes("usage") ? "usage-small" : "instance-small");
  }
  noComplaints(hand);
}

/** Nothing to press, and the API refuses what the console hides. */
async function onlyLooks(page, instance) {
  await page.goto(at(`P/instances/${instance}`));
  await state(page, "running");
  assert.equal(await page.getByRole("group", { name: "Actions" }).getByRole("button").count(), 0);
  const refused = await page.evaluate(
    async ({ project, instance }) => {
      const { session } = await (await fetch("/console/session")).json();
      const path = `/api/v1/projects/${project}/app-instances/${instance}/decommission`;
      const answer = await fetch(path, { method: "POST", headers: { "x-csrf-token": session.csrf_token } });
      return [answer.status, (await answer.json()).code];
    },
    { project: PLACE, instance },
  );
  assert.deepEqual(refused, [403, "insufficient_permissions"]);
  forgive(page, 403);
}

/** Ended, with the proof that nothing is left. Answers the correlation id of its end. */
async function ended(page, instance) {
  await page.goto(at(`P/instances/${instance}`));
  await ask(page, "Decommission");
  await page.getByRole("heading", { name: "instance.decommission" }).waitFor();
  await state(page, "succeeded");
  const correlationId = await page.locator(".facts .copy").first().innerText();
  await page.goto(at(`P/instances/${instance}`));
  await state(page, "decommissioned");
  await page.getByRole("region", { name: "Teardown receipt" }).waitFor();
  await accessible(page, "an instance that is gone");
  await page.getByRole("link", { name: "Logs" }).click();
  await page.getByText("There is nothing to read").waitFor();
  return correlationId.trim();
}

/** The request, the run, its steps, the node's tasks and the events, by one id. */
async function found(page, correlationId) {
  await page.keyboard.press("/");
  await page.getByRole("searchbox").fill(correlationId);
  await page.keyboard.press("Enter");
  for (const entry of [
    /^request decommission/,
    /^run instance\.decommission/,
    /^step close_metering/,
    /^task oci\.remove/,
    /^event apps\.instance\.decommissioned/,
  ]) {
    await page.getByRole("button", { name: entry }).first().waitFor();
  }
  await page.keyboard.press("j");
  await page.waitForURL(/entry=/);
  await accessible(page, "the trace");
  await fits(page, "the trace");
  await picture(page, "trace-life");
  await page.getByRole("link", { name: /^Steps \d/ }).click();
  await page.waitForURL(/kind=step/);
  assert.equal(await page.getByRole("button", { name: /^event / }).count(), 0, "only steps are shown");
  await page.getByRole("link", { name: /^All \d/ }).click();
  await page.getByRole("button", { name: "Use the dark theme" }).click();
  await accessible(page, "the trace at night");
  await picture(page, "trace-life-dark");
}
