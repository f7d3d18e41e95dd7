// An operator's way: find a run by its correlation id, read why it does not advance, pause it, resume it, cancel it and see
// what is undone, retry it, watch another one break and unwind live, and find all of it in the audit log.
import assert from "node:assert/strict";
import { ask, at, copied, forgive, noComplaints, ready, row, signedIn, state, withBrowser } from "./browser.mjs";

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
  await byKeys(page);
  await byFilters(page);
  noComplaints(page);
  await brokenStream(page);
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
  const id = (await cancelled.getByRole("link").innerText()).trim();
  await cancelled.getByRole("link").click();
  await page.waitForURL((url) => url.searchParams.get("correlation_id") === id);
  await page.getByRole("button", { name: /^request cancel_workflow/ }).waitFor();
}

/** `g` and a letter lead to a page, also from one that was opened by its address and listens to keys itself. */
async function byKeys(page) {
  for (const begin of ["P/catalog?view=all", "P/artifacts"]) {
    await page.goto(at(begin));
    await page.getByRole("link", { name: /Hello|hello/ }).first().waitFor();
    await page.keyboard.press("j");
    await page.waitForFunction(() => document.activeElement?.matches("a"));
    for (const [key, name] of [["i", "Instances"], ["k", "Service accounts"], ["r", "Runs"]]) {
      await page.keyboard.press("g");
      await page.keyboard.press(key);
      await page.getByRole("heading", { name, level: 1 }).waitFor();
    }
  }
}

/** What is chosen and written narrows the list and stands in the address; away with it, all are there again. */
async function byFilters(page) {
  await page.goto(at("P/runs"));
  await page.getByRole("combobox", { name: "State" }).selectOption("compensated");
  await page.waitForURL(/status=compensated/);
  await page.getByRole("textbox", { name: "Kind" }).fill("demo.tour");
  await page.keyboard.press("Enter");
  await page.waitForURL(/kind=demo\.tour/);
  await page.getByRole("combobox", { name: "Since" }).selectOption("1h");
  await page.waitForURL(/since=1h/);
  await row(page, "demo-tour-shelf").first().waitFor();
  await page.locator(".stale").waitFor({ state: "detached" });
  const states = await page.locator("td .state").allInnerTexts();
  assert.deepEqual([...new Set(states)], ["compensated"]);
  await page.getByRole("textbox", { name: "Correlation id" }).fill("nobody-asked-this");
  await page.keyboard.press("Enter");
  await page.getByText("No run matches these filters").waitFor();
  await page.getByRole("link", { name: "Clear" }).click();
  await row(page, "demo-tour-lamp").first().waitFor();
}

/** A stream that is refused for a while says so and comes back by itself. */
async function brokenStream(page) {
  let refusals = 2;
  await page.route(/\/workflows\/[^/]+\/stream$/, (route) =>
    refusals-- > 0 ? route.fulfill({ status: 503, body: "" }) : route.continue(),
  );
  await page.goto(at("P/runs?status=waiting"));
  await row(page, "waiting").getByRole("link", { name: /demo\.tour/ }).first().click();
  await page.locator(".facts").getByText("reconnecting").waitFor();
  await page.locator(".facts").getByText("live").waitFor();
  assert.equal(refusals, -1, "it was asked for three times");
  await page.unroute(/\/workflows\/[^/]+\/stream$/);
  forgive(page, 503);
  noComplaints(page);
}

/** Signed out in one window, the other one that follows a run is at the sign-in soon. */
async function leave(page) {
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.locator(".facts").getByText("live").waitFor();
  const me = await page.request.get(`${ready.api_url}/api/v1/me`);
  assert.equal((await me.json()).name, "operator");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "You are signed out" }).waitFor();
  assert.equal((await page.request.get(`${ready.api_url}/api/v1/me`)).status(), 401, "signed out is signed out");
  await other.getByLabel("Password").waitFor();
}

function navigations(page) {
  const loads = { count: 0 };
  page.on("request", (request) => {
    if (request.isNavigationRequest()) loads.count += 1;
  });
  return loads;
}
