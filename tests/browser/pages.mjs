// Every page, by day and by night, on a desk and in a hand: it shows what it is about, nothing serious keeps anybody out,
// nothing stands out to the side. The pictures of the documentation are taken on the way.
import assert from "node:assert/strict";
import { accessible, ask, at, fits, HAND, listOr, noComplaints, openRun, picture, row, signedIn, withBrowser } from "./browser.mjs";

/** Address, and what is seen once the page is there. A name at the end asks for a picture. */
const PAGES = [
  ["P/runs", (page) => row(page, "demo-tour-shelf").getByText("compensated"), "runs"],
  ["platform/runs?view=stuck", (page) => page.getByText("Nothing needs attention")],
  ["platform/schedules", (page) => page.getByText("platform.check_promises"), "schedules"],
  ["P/trace", (page) => page.getByText("Which correlation id?")],
  ["P/trace?correlation_id=demo-tour-shelf", (page) => page.getByRole("button", { name: /^step assemble/ }).first()],
  ["P/events", (page) => listOr(page, "Events", "Nothing was told")],
  ["P/usage", (page) => page.getByRole("region", { name: "Chart" }).or(page.getByText("Nothing was used")).first()],
  ["P/usage?view=ledger", (page) => listOr(page, "Ledger", "Nothing was charged yet")],
  ["P/webhooks", (page) => listOr(page, "Webhooks", "Nothing is sent anywhere yet")],
  ["P/instances", (page) => listOr(page, "Instances", "Nothing runs here yet")],
  ["P/catalog?view=all", (page) => page.getByRole("link", { name: /JupyterLab/ }), "catalog"],
  ["P/catalog/jupyterlab", (page) => page.getByRole("region", { name: "Entitlement" })],
  ["platform/catalog/jupyterlab/4.3.0", (page) => page.getByRole("heading", { name: "What it needs" }), "version"],
  ["P/catalog/jupyterlab/4.3.0/deploy", (page) => page.getByLabel(/package index/)],
  ["P/catalog/slurm-reference/24.05.0/deploy", (page) => page.getByLabel(/Controller/)],
  ["P/catalog?view=reviews", (page) => page.getByText("Nothing was sent for review")],
  ["P/artifacts", (page) => listOr(page, "Artifacts", "Nothing was published yet")],
  ["P/artifacts?view=keys", (page) => listOr(page, "Signing keys", "No signing key")],
  ["platform/nodes", (page) => page.getByRole("article").filter({ hasText: "Heartbeat" }), "nodes"],
  ["platform/allocations", (page) => page.getByRole("row").filter({ hasText: "example" })],
  ["P/members", (page) => page.getByRole("combobox", { name: "Role of viewer" })],
  ["P/service-accounts", (page) => listOr(page, "Service accounts", "No service accounts yet")],
  ["P/audit", (page) => page.getByRole("heading", { name: "Audit" })],
];

await withBrowser(async (browser) => {
  const desk = await signedIn(browser, "admin");
  await walk(desk, "light", "");
  await aRun(desk, "");
  await dialogs(desk);
  await desk.getByRole("button", { name: "Use the dark theme" }).click();
  await walk(desk, "dark", "-dark");
  await aRun(desk, "-dark");
  noComplaints(desk);

  for (const colorScheme of ["light", "dark"]) {
    const hand = await signedIn(browser, "admin", { viewport: HAND, colorScheme });
    await walk(hand, `${colorScheme} in a hand`, colorScheme === "light" ? "-small" : null);
    await aRun(hand, colorScheme === "light" ? "-small" : "-small-dark");
    await hand.getByRole("button", { name: "Menu" }).click();
    await accessible(hand, "the menu in a hand");
    await hand.getByRole("link", { name: "Catalog" }).click();
    await hand.getByRole("heading", { name: "Catalog" }).waitFor();
    noComplaints(hand);
  }
});

async function walk(page, how, suffix) {
  for (const [path, shown, name] of PAGES) {
    await page.goto(at(path));
    await shown(page).waitFor();
    await accessible(page, `${path}, ${how}`);
    await fits(page, `${path}, ${how}`);
    if (name && suffix !== null) await picture(page, name + suffix);
  }
}

/** The page of a run, of one that was undone and of one that waits. */
async function aRun(page, suffix) {
  await page.goto(at("P/runs?correlation_id=demo-tour-shelf"));
  await openRun(page, "demo-tour-shelf");
  await page.getByRole("region", { name: "What stopped the run" }).waitFor();
  await page.getByRole("button", { name: /assemble/ }).click();
  await page.getByRole("region", { name: "Step assemble" }).waitFor();
  await accessible(page, "a run that was undone");
  await fits(page, "a run that was undone");

  await page.goto(at("P/runs?correlation_id=demo-tour-clock"));
  await openRun(page, "demo-tour-clock");
  await page.getByText("waiting_signal").waitFor();
  await page.locator(".facts").getByText("live").waitFor();
  await accessible(page, "a run that waits");
  await fits(page, "a run that waits");
  await picture(page, `run${suffix}`);
}

/** What opens above a page: questions, the keys, and a key that is shown once. */
async function dialogs(page) {
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByText("undoes these steps").waitFor();
  await accessible(page, "the cancel dialog");
  await page.getByRole("button", { name: "Not now" }).click();
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keyboard" }).waitFor();
  await accessible(page, "the keys");
  await page.keyboard.press("Escape");

  await webhook(page);
  await budget(page);

  await page.goto(at("P/service-accounts"));
  await page.getByRole("button", { name: "New service account" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Nightly builds");
  await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
  await page.getByText("-----BEGIN PRIVATE KEY-----").waitFor();
  await accessible(page, "a new key");
  await page.getByRole("button", { name: "I have kept it" }).click();
  await page.reload();
  await row(page, "nightly-builds").waitFor();
  assert.equal(await page.getByText("BEGIN PRIVATE KEY").count(), 0, "a key is shown once");
  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
  await row(page, "nightly-builds").getByText("disabled").waitFor();
}

/** Made, read once, rotated, turned off, and gone. */
async function webhook(page) {
  await page.goto(at("P/webhooks"));
  await page.getByRole("button", { name: "New webhook" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Address/).fill("https://hooks.example.com/gpuaas");
  await dialog.getByLabel(/What it is for/).fill("Pager of the night shift");
  await dialog.getByRole("checkbox", { name: "failed", exact: true }).check();
  await accessible(page, "a new webhook");
  await fits(page, "a new webhook");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByText(/^whsec_/).waitFor();
  await accessible(page, "a new secret");
  await page.getByRole("button", { name: "I have kept it" }).click();
  await row(page, "hooks.example.com").getByRole("link").click();
  await page.getByText("Nothing was sent yet").waitFor();
  assert.equal(await page.getByText(/whsec_/).count(), 0, "a secret is shown once");
  await accessible(page, "a webhook");
  await fits(page, "a webhook");
  await ask(page, "Rotate secret");
  await page.getByText(/^whsec_/).waitFor();
  await page.getByText("The secret before ends").waitFor();
  await ask(page, "Disable");
  await page.getByRole("region", { name: "Why nothing is sent" }).waitFor();
  await ask(page, "Enable");
  await page.locator(".head .state").filter({ hasText: "active" }).waitFor();
  await ask(page, "Delete");
  await page.getByText("Nothing is sent anywhere yet").waitFor();
}

async function budget(page) {
  await page.goto(at("P/usage"));
  await page.getByRole("button", { name: "Set the budget" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/At most a month/).fill("much");
  await dialog.getByText("An amount such as").waitFor();
  await dialog.getByLabel(/At most a month/).fill("250");
  await dialog.getByLabel("When it is reached").selectOption("deny_new");
  await accessible(page, "the budget");
  await dialog.getByRole("button", { name: "Set", exact: true }).click();
  const standing = page.getByRole("region", { name: "Budget" });
  await standing.getByText("refuse new instances").waitFor();
  await standing.getByText("simulate").waitFor();
}
