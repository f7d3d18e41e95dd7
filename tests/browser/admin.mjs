// The way of those who decide: a publisher sends a manifest, a platform admin reads what it changes and approves it, sees
// which gate keeps the version from being staged, drains and updates a node, turns a schedule and retries what stopped alike; a project admin
// entitles the project, narrows it, and switches it off.
import assert from "node:assert/strict";
import { accessible, ask, at, copied, fits, noComplaints, PLACE, row, send, signedIn, state, withBrowser } from "./browser.mjs";
import { nextManifest } from "./filled.mjs";

await withBrowser(async (browser) => {
  await submit(await signedIn(browser, "publisher"));
  const admin = await signedIn(browser, "admin");
  await review(admin);
  await gates(admin);
  await nodes(admin);
  await schedules(admin);
  await together(admin);
  noComplaints(admin);
  const manager = await signedIn(browser, "project-admin");
  await entitle(manager);
  noComplaints(manager);
});

async function submit(page) {
  const manifest = nextManifest("1.1.0", "Greets in more languages.");
  await send(page, `/projects/${PLACE}/apps/manifests`, manifest, "POST", "application/yaml");
  await page.goto(at("P/catalog?view=reviews"));
  await row(page, "hello 1.1.0").getByText("pending").waitFor();
}

async function review(page) {
  await page.goto(at("platform/catalog"));
  await page.getByRole("link", { name: "Reviews" }).click();
  await page.getByRole("link", { name: /hello 1\.1\.0/ }).click();
  const change = row(page, "/version/release_notes");
  await change.getByText("The first release.").waitFor();
  await change.getByText("Greets in more languages.").waitFor();
  await accessible(page, "a submission");
  await ask(page, "Approve", "It reads well");
  await state(page, "approved");
  assert.equal(await page.getByRole("button", { name: "Reject" }).count(), 0, "what is decided is decided");
}

async function gates(page) {
  await page.goto(at("platform/catalog/hello"));
  await page.getByRole("link", { name: "1.1.0" }).click();
  await state(page, "draft");
  const stage = page.getByRole("article", { name: "stage" });
  await stage.getByText("blocked").waitFor();
  await stage.getByRole("listitem").filter({ hasText: "manifest valid" }).getByRole("img", { name: "green" }).waitFor();
  await stage.getByRole("listitem").filter({ hasText: "artifacts registered" }).getByRole("img", { name: "red" }).waitFor();
  await page.getByRole("button", { name: "Stage", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("It would be refused now").waitFor();
  await accessible(page, "a move that would be refused");
  await dialog.getByRole("button", { name: "Not now" }).click();
}

async function nodes(page) {
  await page.goto(at("platform/nodes"));
  await ask(page, "Drain", "The fans are loud");
  await page.locator(".panel .state").filter({ hasText: "drained" }).waitFor();
  await ask(page, "Activate", "They were cleaned");
  await page.locator(".panel .state").filter({ hasText: "active" }).waitFor();

  await updated(page);
  await page.getByRole("button", { name: "Add a node" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("rack-7");
  await page.getByRole("dialog").getByRole("button", { name: "Get the token" }).click();
  await page.getByText(/gpuaas agent --platform .* --enroll/).waitFor();
  await accessible(page, "an enrolment token");
  await page.getByRole("button", { name: "I have used it" }).click();
  await page.getByRole("article", { name: "rack-7" }).getByText("enrolling").waitFor();
  assert.equal(await page.getByText("--enroll").count(), 0, "a token is shown once");
}

/** The run says what became of it: this node is part of the platform's own process, and goes on as it is. */
async function updated(page) {
  await page.getByRole("button", { name: "Update", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("option", { name: "1.2.0" }).waitFor({ state: "attached" });
  assert.match(await copied(dialog, "Copy as CLI"), /^gpuaas nodes update local-\S+ 1\.2\.0$/);
  await accessible(page, "the question before an update");
  await dialog.getByRole("button", { name: "Update", exact: true }).click();
  await page.getByRole("heading", { name: "node.update_agent" }).waitFor();
  await state(page, "compensated");
  await page.getByRole("region", { name: "What stopped the run" }).getByText(/part of another process/).waitFor();
  await page.goto(at("platform/nodes"));
}

async function schedules(page) {
  await page.goto(at("platform/schedules"));
  const line = row(page, "platform.check_promises");
  await line.getByText("never").waitFor();
  await line.getByRole("button", { name: "Pause" }).click();
  await line.locator(".state").filter({ hasText: "paused" }).waitFor();
  await line.getByRole("button", { name: "Resume" }).click();
  await line.getByRole("button", { name: "Pause" }).waitFor();
  await line.getByRole("button", { name: "Run now" }).click();
  await line.getByRole("link", { name: "succeeded" }).waitFor();
}

/** Two runs rest for the same cause: one answer sends both on, after the server said what it would do. */
async function together(page) {
  await paused(page, (await runOf(page, "demo-tour-clock")).id);
  const again = await send(page, `/admin/workflows/${(await runOf(page, "demo-tour-shelf")).id}/retry`, {});
  await paused(page, again.id);
  await page.goto(at("platform/runs?view=stuck"));
  const alike = page.getByRole("region", { name: "Failures alike" }).getByRole("article");
  await alike.filter({ hasText: "demo.tour" }).getByText("2", { exact: true }).waitFor();
  await accessible(page, "runs that stopped alike");
  await fits(page, "runs that stopped alike");
  await alike.getByRole("button", { name: "Retry all alike" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Show what would happen" }).click();
  await dialog.getByText("2 would go on").waitFor();
  await accessible(page, "what a retry of all would do");
  await dialog.getByRole("button", { name: "Retry 2 runs" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByText("Nothing needs attention").waitFor();
}

async function runOf(page, correlationId) {
  return (await send(page, `/admin/workflows?correlation_id=${correlationId}`, undefined, "GET")).items[0];
}

async function paused(page, run) {
  await send(page, `/admin/workflows/${run}/pause`, {});
}

async function entitle(page) {
  await page.goto(at("P/catalog"));
  await page.getByRole("link", { name: "All apps", exact: true }).click();
  await page.getByRole("link", { name: /JupyterLab/ }).click();
  const panel = page.getByRole("region", { name: "Entitlement" });
  await panel.getByText("not entitled").waitFor();
  await page.getByRole("button", { name: "Entitle the project" }).click();
  assert.equal(await copied(page.getByRole("dialog"), "Copy as CLI"), "gpuaas entitle jupyterlab");
  await page.getByRole("dialog").getByLabel(/Reason/).fill("The team asked");
  await page.getByRole("dialog").getByRole("button", { name: "Entitle the project" }).click();
  await panel.locator(".state").filter({ hasText: "active" }).waitFor();
  await page.getByRole("button", { name: "Narrow" }).click();
  await page.getByRole("dialog").getByLabel(/GPUs per instance/).fill("2");
  await page.getByRole("dialog").getByRole("button", { name: "Set" }).click();
  await panel.getByText("at most 2").waitFor();
  await panel.getByText("This project does not allow").waitFor();
  await accessible(page, "an entitlement that was narrowed");
  await page.getByRole("button", { name: "Switch off" }).click();
  assert.equal(await copied(page.getByRole("dialog"), "Copy as CLI"), "gpuaas entitle jupyterlab --off");
  await page.getByRole("dialog").getByRole("button", { name: "Switch off" }).click();
  await panel.locator(".state").filter({ hasText: "disabled" }).waitFor();
}
