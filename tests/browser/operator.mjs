// An operator's way: find a run by its correlation id, read why it does not advance, pause it, resume it, cancel it and see
// what is undone, retry it, watch another one break and unwind live, and find all of it in the audit log.
import assert from "node:assert/strict";
import { ask, at, copied, noComplaints, ready, signedIn, state, withBrowser } from "./browser.mjs";

await withBrowser(async (browser) => {
  const page = await signedIn(browser, "operator");
  assert.ok(page.url().startsWith(at("P/runs")), page.url());
  assert.equal(await page.evaluate(() => document.cookie), "", "no cookie can be read by scripts");

  await find(page, "demo-tour-clock");

  const cause = page.getByRole("region", { name: "Why the run does not advance" });
  await cause.getByText("waits for a signal from outside").waitFor();
  await cause.getByText("waiting_signal").waitFor();
  await page.getByRole("button", { name: /reserve_desk/ }).click();
  const panel = page.getByRole("region", { name: "Step reserve_desk" });
  await panel.getByText('"thing": "clock"').waitFor();
  assert.match(page.url(), /step=reserve_desk/, "what is open is in the address");

  await page.getByRole("button", { name: "demo-tour-clock" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "demo-tour-clock");
  const run = new URL(page.url()).pathname.split("/").at(-1);
  assert.equal(await copied(page, "Copy as CLI"), `gpuaas workflows watch ${run}`);
  assert.ok((await copied(page, "Copy as curl")).includes(`/workflows/${run}'`), "the same for a terminal");

  // Nothing is loaded again from here on: the stream tells what changes.
  const loads = navigations(page);
  await ask(page, "Pause");
  await state(page, "paused");
  await cause.getByText("An operator paused this run.").waitFor();
  await ask(page, "Resume");
  await state(page, "waiting");
  await cancel(page);
  await retry(page, { of: page.url() });
  await state(page, "waiting");
  await watchLive(page);
  assert.equal(loads.count, 0, "no page was loaded again");

  await audit(page);
  noComplaints(page);
  await leave(page);
});

/** By its correlation id to everything under it, and from there to the run. */
async function find(page, correlationId) {
  await page.keyboard.press("/");
  await page.getByRole("searchbox").fill(correlationId);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/trace\?correlation_id=/);
  await page.getByRole("button", { name: /^run demo\.tour/ }).first().click();
  await page.getByRole("link", { name: /Open the run/ }).click();
  await page.getByRole("heading", { name: "Steps" }).waitFor();
}

/** Before anything is undone, the page says what will be, and what stays. */
async function cancel(page) {
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  const dialog = page.getByRole("dialog");
  const undone = dialog.getByRole("list", { name: "Will be undone" }).getByRole("listitem");
  assert.deepEqual(await undone.allInnerTexts(), ["reserve_desk"]);
  assert.ok((await dialog.getByRole("list", { name: "Stays" }).innerText()).includes("fetch_parts"));
  await dialog.getByLabel(/Reason/).fill("The journey is over");
  await dialog.getByRole("button", { name: "Cancel and undo" }).click();
  await state(page, "cancelled");
  await page.getByRole("button", { name: /reserve_desk\s*compensated/ }).waitFor();
}

async function retry(page, { of }) {
  await ask(page, "Retry");
  await page.waitForURL((url) => url.pathname !== new URL(of).pathname);
  await page.getByText("Retry of").waitFor();
}

/** A run that waits, breaks and undoes what it did: each is drawn while it happens, and the cause stands above it. */
async function watchLive(page) {
  await find(page, "demo-tour-shelf");
  await state(page, "compensated");
  await retry(page, { of: page.url() });
  await page.locator(".bar.planned").first().waitFor({ state: "attached" });
  await page.locator(".bar.wait.going").waitFor({ state: "attached" });
  await state(page, "compensated");
  await page.locator(".bar.undo").waitFor({ state: "attached" });
  await page.getByRole("region", { name: "What stopped the run" }).getByText("does_not_fit").waitFor();
  assert.equal(await page.locator(".bar.planned").count(), 0, "nothing lies ahead of a run that is over");
}

async function audit(page) {
  await page.getByRole("link", { name: "Audit" }).click();
  const cancelled = page.getByRole("row").filter({ hasText: "cancel workflow" }).first();
  await cancelled.getByRole("button").click();
  await page.getByText("The journey is over").waitFor();
  await cancelled.getByRole("link", { name: "demo-tour-clock" }).or(cancelled.getByRole("link")).first().click();
  await page.waitForURL(/\/trace\?correlation_id=/);
  await page.getByRole("button", { name: /^request cancel_workflow/ }).first().waitFor();
}

async function leave(page) {
  const me = await page.request.get(`${ready.api_url}/api/v1/me`);
  assert.equal((await me.json()).name, "operator");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "You are signed out" }).waitFor();
  assert.equal((await page.request.get(`${ready.api_url}/api/v1/me`)).status(), 401, "signed out is signed out");
}

function navigations(page) {
  const loads = { count: 0 };
  page.on("request", (request) => {
    if (request.isNavigationRequest()) loads.count += 1;
  });
  return loads;
}
