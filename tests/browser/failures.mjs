// What failed alike is repaired once: three deployments fail because the node cannot fetch their image, are found together by
// what they failed with, and begun anew together once it can. The node obeys words on stdout.
import assert from "node:assert/strict";
import { accessible, at, copied, fits, HAND, node, noComplaints, PLACE, picture, row, send, signedIn, state, withBrowser } from "./browser.mjs";

const NAMES = ["front-desk", "back-desk", "night-desk"];

await withBrowser(async (browser) => {
  const operator = await signedIn(browser, "operator");
  const instances = await failed(operator);
  const admin = await signedIn(browser, "admin");
  await together(admin);
  for (const instance of instances) await running(operator, instance);
  await inAHand(browser);
  noComplaints(operator);
  noComplaints(admin);
});

/** Really failed: each run took back what it did, and its instance says why. */
async function failed(page) {
  const { items } = await send(page, `/projects/${PLACE}/allocations`, undefined, "GET");
  const allocation_id = items.find((one) => one.memory_gib === 64).id;
  const wish = { app_slug: "hello", version: "1.0.0", placement_intent: { allocation_id } };
  const made = [];
  for (const display_name of NAMES) {
    await node("fail");
    made.push(await send(page, `/projects/${PLACE}/app-instances?wait=60s`, { ...wish, display_name }));
  }
  assert.deepEqual(made.map(({ workflow }) => workflow.status), NAMES.map(() => "compensated"));
  return made.map(({ id }) => id);
}

/** One signature, with how many have it; the server says first what it would do, and then they go on by themselves. */
async function together(page) {
  await page.goto(at("platform/runs"));
  await page.getByRole("link", { name: "Failed", exact: true }).click();
  await page.waitForURL(/view=failed/);
  const groups = page.getByRole("region", { name: "Failures alike" }).getByRole("article");
  const alike = groups.filter({ hasText: "instance.deploy" });
  await alike.getByText("3", { exact: true }).waitFor();
  await alike.getByText(/image_pull_failed/).waitFor();
  await groups.filter({ hasText: "demo.tour" }).getByText(/does_not_fit/).waitFor();
  await accessible(page, "runs that failed alike");
  await fits(page, "runs that failed alike");
  await picture(page, "failures");
  await alike.getByRole("button", { name: "Retry all alike" }).click();
  const dialog = page.getByRole("dialog");
  assert.match(await copied(dialog, "Copy as curl"), /"ended":true,"error_signature":"image_pull_failed"/);
  await dialog.getByRole("button", { name: "Show what would happen" }).click();
  await dialog.getByText("3 would go on").waitFor();
  await accessible(page, "what a retry of all that failed would do");
  await dialog.getByRole("button", { name: "Retry 3 runs" }).click();
  await dialog.waitFor({ state: "detached" });
  await alike.waitFor({ state: "detached" });
  await row(page, "demo.tour").first().waitFor();
  assert.equal(await row(page, "instance.deploy").count(), 0, "what was tried again is no failure any more");

  await page.goto(at("platform/runs?kind=instance.deploy&status=succeeded"));
  await row(page, "instance.deploy").nth(NAMES.length - 1).waitFor();
  await row(page, "instance.deploy").first().getByRole("link", { name: /instance\.deploy/ }).click();
  await page.getByText("Retry of").waitFor();
}

async function running(page, instance) {
  await page.goto(at(`P/instances/${instance}`));
  await state(page, "running");
}

async function inAHand(browser) {
  for (const colorScheme of ["light", "dark"]) {
    const hand = await signedIn(browser, "admin", { viewport: HAND, colorScheme });
    await hand.goto(at("platform/runs?view=failed"));
    await hand.getByRole("region", { name: "Failures alike" }).getByText(/does_not_fit/).waitFor();
    await accessible(hand, `failures in a hand, ${colorScheme}`);
    await fits(hand, `failures in a hand, ${colorScheme}`);
    noComplaints(hand);
  }
}
