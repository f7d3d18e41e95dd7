// The way of an app from its bytes to everybody: an artifact is looked at, verified and promoted; its version is staged, goes
// out as a canary, wider, to all, or back; a project sees where it fits and what it costs before it deploys; and in the end
// all trust is taken back, and it is retired once nothing uses it.
import assert from "node:assert/strict";
import { accessible, ask, at, copied, DESK, fits, forgive, HAND, noComplaints, PLACE, picture, send, signedIn, state, withBrowser } from "./browser.mjs";

await withBrowser(async (browser) => {
  const admin = await signedIn(browser, "admin");
  await prices(admin);
  const artifact = await trusted(admin);
  await goesOut(admin);
  const operator = await signedIn(browser, "operator");
  await nowhere(operator, admin);
  const instance = await deployed(operator);
  noComplaints(operator);
  await comesBack(admin);
  await distrusted(admin, artifact);
  await retired(admin, artifact, instance);
  noComplaints(admin);
});

async function prices(page) {
  const price = { model: "per_unit", currency: "EUR", effective_from: "2026-01-01T00:00:00Z", amount_minor: 36, per: 3600 };
  const seconds = { usage_source: "app_runtime", usage_unit: "session_seconds", covers: "service" };
  await send(page, "/admin/prices", { ...price, ...seconds });
}

/** From the list to the artifact: what its verification found, checked again and let into a channel. */
async function trusted(page) {
  await page.goto(at("P/artifacts"));
  await page.getByRole("link", { name: /hello 1\.1\.0/ }).click();
  await page.getByRole("heading", { name: "hello 1.1.0 runtime" }).waitFor();
  const artifact = new URL(page.url()).pathname.split("/").at(-1);
  await page.getByRole("table", { name: "Checks" }).getByText("passed").first().waitFor();
  await ask(page, "Verify", "Once more before it goes out");
  await page.goto(at(`P/artifacts/${artifact}`));
  await state(page, "verified");
  await page.getByRole("button", { name: "Promote", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Channel").selectOption("prod");
  assert.match(await copied(dialog, "Copy as curl"), /"channel":"prod"/);
  await accessible(page, "the question before a promotion");
  await dialog.getByRole("button", { name: "Promote", exact: true }).click();
  await page.getByRole("heading", { name: "artifact.promote" }).waitFor();
  await state(page, "succeeded");
  await page.goto(at(`P/artifacts/${artifact}`));
  await state(page, "promoted");
  await page.locator(".facts").getByText("prod").waitFor();
  await accessible(page, "an artifact that was promoted");
  return artifact;
}

/** Staged, tried by some, then by more. */
async function goesOut(page) {
  await page.goto(at("platform/catalog/hello/1.1.0"));
  await ask(page, "Stage");
  await state(page, "staged");
  await page.getByRole("button", { name: "Start canary" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Percent of projects").fill("10");
  await dialog.getByRole("checkbox", { name: "example" }).check();
  await accessible(page, "the question before a canary");
  await dialog.getByRole("button", { name: "Start canary" }).click();
  await state(page, "canary");
  const canary = page.getByRole("region", { name: "Canary" });
  await canary.getByText("Held at 10 % of projects.").waitFor();
  await page.getByRole("button", { name: "Widen canary" }).click();
  await dialog.getByLabel("Percent of projects").fill("50");
  await dialog.getByRole("button", { name: "Widen canary" }).click();
  await canary.getByText("Held at 50 % of projects.").waitFor();
  await accessible(page, "a canary");
  await fits(page, "a canary");
}

/** Refused, because the one machine takes nothing: every allocation against everything that is asked of it. */
async function nowhere(page, admin) {
  const node = (await send(admin, "/admin/nodes", undefined, "GET")).items[0].id;
  await send(admin, `/admin/nodes/${node}/drain`, {});
  await page.goto(at("P/catalog/hello/1.1.0/deploy"));
  await page.getByLabel("Name").fill("nowhere-bird");
  await page.getByLabel("Greeting").fill("Welcome");
  await page.getByRole("button", { name: "Deploy", exact: true }).click();
  await page.getByRole("alert").getByText("placement_unsatisfiable").waitFor();
  const matrix = page.getByRole("table", { name: "Placement" });
  const { items } = await send(page, `/projects/${PLACE}/allocations?status=active`, undefined, "GET");
  assert.equal(await matrix.getByRole("row").count(), items.length + 1, "every allocation has a line");
  const line = matrix.getByRole("row").nth(1);
  assert.deepEqual(
    (await line.locator("li strong").allInnerTexts()).sort(),
    ["accelerator", "allocation status", "capacity shape", "exclusive node", "free cpu cores", "free gpu count", "free memory gib",
      "host port", "min gpu count", "node status", "shared node"],
    "every predicate is there",
  );
  const first = await line.getByRole("listitem").first().innerText();
  assert.match(first, /node status: active is asked, drained is there/, "what does not hold comes first");
  await line.getByText("free cpu cores: at least 1 is asked").waitFor();
  await accessible(page, "a refusal with its matrix");
  await fits(page, "a refusal with its matrix");
  await line.getByRole("listitem").last().scrollIntoViewIfNeeded();
  await picture(page, "refused");
  await page.setViewportSize(HAND);
  await accessible(page, "a refusal with its matrix in a hand");
  await fits(page, "a refusal with its matrix in a hand");
  await page.setViewportSize(DESK);
  forgive(page, 422);
  await send(admin, `/admin/nodes/${node}/activate`, {});
}

/** What it costs is said before. A field that is refused is named. Answers the instance. */
async function deployed(page) {
  await page.goto(at("P/catalog/hello/1.1.0/deploy"));
  await page.getByLabel("Name").fill("canary-bird");
  await page.getByLabel("Greeting").fill("x".repeat(201));
  await page.getByText(/200/).last().waitFor();
  assert.ok(await page.getByRole("button", { name: "Deploy", exact: true }).isDisabled(), "what the schema forbids is not sent");
  await page.getByLabel("Greeting").fill("Welcome");
  await page.getByRole("button", { name: "Show the plan" }).click();
  const plan = page.getByRole("region", { name: "Plan" });
  await plan.getByText("€0.36").waitFor();
  await plan.getByRole("table", { name: "Placement" }).getByText("yes").first().waitFor();
  await accessible(page, "a plan with its price");
  assert.match(await copied(page, "Copy as CLI"), /^gpuaas up hello 1\.1\.0|^gpuaas up .*hello/);
  assert.match(await copied(page, "Copy as curl"), /"display_name":"canary-bird"/);
  await page.getByRole("button", { name: "Deploy", exact: true }).click();
  await page.getByRole("heading", { name: "instance.deploy" }).waitFor();
  await state(page, "succeeded");
  const subject = await page.getByRole("link", { name: /^app_instance:/ }).innerText();
  return subject.trim().replace("app_instance:", "");
}

/** For everybody, and from there not back: another one is, before that. */
async function comesBack(page) {
  await page.goto(at("platform/catalog/hello/1.1.0"));
  await ask(page, "Roll back", "Somebody saw a flicker");
  await state(page, "staged");
  await page.getByRole("button", { name: "Start canary" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Percent of projects").fill("100");
  await dialog.getByRole("button", { name: "Start canary" }).click();
  await state(page, "canary");
  await ask(page, "Publish", "It was the lamp");
  await state(page, "active");
  await ask(page, "Deprecate", "The next one is better");
  await state(page, "deprecated");
}

async function distrusted(page, artifact) {
  await page.goto(at(`P/artifacts/${artifact}`));
  await ask(page, "Deprecate", "The next one is better");
  await page.goto(at(`P/artifacts/${artifact}`));
  await state(page, "deprecated");
  await ask(page, "Revoke", "Its key was lost");
  await state(page, "revoked");
  await accessible(page, "an artifact that was revoked");
}

/** Not while anything uses it, and who that is stands there; once nothing does, it is gone with its bytes. */
async function retired(page, artifact, instance) {
  await retire(page, artifact);
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("alert").getByText("1 instances, 1 versions and 0 releases").waitFor();
  const uses = dialog.getByRole("list", { name: "What uses it" });
  await uses.getByText(`instance ${instance.slice(-12)}: serving, running`).waitFor();
  await uses.getByText("version hello 1.1.0: deprecated").waitFor();
  assert.match(await copied(dialog, "Copy as curl"), /"when":"now"/);
  await accessible(page, "an artifact that is in use");
  await dialog.getByRole("button", { name: "Not now" }).click();
  forgive(page, 409);

  await send(page, `/admin/policies/project/${PLACE}/artifact.retire_grace_seconds`, { value: 0 }, "PUT");
  await send(page, `/projects/${PLACE}/app-instances/${instance}/decommission?wait=60s`, {});
  await page.goto(at("platform/catalog/hello/1.1.0"));
  await ask(page, "Retire", "Nobody runs it any more");
  await state(page, "retired");
  await retire(page, artifact);
  await page.getByRole("heading", { name: "artifact.retire" }).waitFor();
  await state(page, "succeeded");
  await page.goto(at(`P/artifacts/${artifact}`));
  await state(page, "retired");
  assert.equal(await page.getByRole("button", { name: "Retire", exact: true }).count(), 0, "what is over is over");
  await accessible(page, "an artifact that was retired");
}

async function retire(page, artifact) {
  await page.goto(at(`P/artifacts/${artifact}`));
  await page.getByRole("button", { name: "Retire", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("When").selectOption("now");
  await dialog.getByRole("button", { name: "Retire", exact: true }).click();
}
