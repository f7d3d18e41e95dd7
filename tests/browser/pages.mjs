// Every page of a project that was worked in, by day and by night, on a desk and in a hand: it shows what it is about,
// nothing serious keeps anybody out, nothing stands out to the side. The pictures of the documentation are taken on the way.
import assert from "node:assert/strict";
import { accessible, ask, at, fits, HAND, noComplaints, openRun, person, picture, ready, row, signedIn, withBrowser } from "./browser.mjs";
import { fill, receiving } from "./filled.mjs";

/** Address, and what is seen once the page is there. A name at the end asks for a picture. */
const pagesOf = ({ instance, gone, webhook, submission, artifact }) => [
  ["P/runs", (page) => row(page, "demo-tour-shelf").getByText("compensated").first(), "runs"],
  ["platform/runs", (page) => row(page, "instance.deploy").getByText("example").first()],
  ["platform/runs?view=stuck", (page) => row(page, "demo.tour").getByText("paused by operator")],
  ["platform/schedules", (page) => row(page, "platform.check_promises"), "schedules"],
  ["P/trace", (page) => page.getByText("Which correlation id?")],
  ["P/trace?correlation_id=demo-tour-shelf", (page) => page.getByRole("button", { name: /^step assemble/ }).first()],
  ["P/events", (page) => row(page, "apps.instance.running").first()],
  ["P/usage?window=hour&of=requests", (page) => page.getByRole("region", { name: "Chart" })],
  ["P/usage?view=ledger", (page) => row(page, "credit")],
  ["P/webhooks", (page) => row(page, "Pager of the night shift")],
  [`P/webhooks/${webhook}`, (page) => row(page, "apps.instance.running").getByText("delivered").first()],
  ["P/instances", (page) => row(page, "front-desk")],
  ["P/instances?ended=true", (page) => row(page, "back-room").getByText("decommissioned")],
  [`P/instances/${instance}`, (page) => row(page, "ssh -N -L")],
  [`P/instances/${instance}?view=events`, (page) => row(page, "apps.instance.running")],
  [`P/instances/${gone}`, (page) => page.getByRole("region", { name: "Teardown receipt" })],
  ["P/catalog?view=all", (page) => page.getByRole("link", { name: /JupyterLab/ }), "catalog"],
  ["P/catalog/jupyterlab", (page) => page.getByRole("region", { name: "Entitlement" })],
  ["platform/catalog/jupyterlab/4.3.0", (page) => page.getByRole("heading", { name: "What it needs" }), "version"],
  ["P/catalog/jupyterlab/4.3.0/deploy", (page) => page.getByLabel(/package index/)],
  ["P/catalog/slurm-reference/24.05.0/deploy", (page) => page.getByText(/^(Add|Remove)$/).first()],
  ["P/catalog?view=reviews", (page) => row(page, "hello 1.9.0")],
  [`platform/submissions/${submission}`, (page) => page.getByText("Greets in more languages.").first()],
  ["P/artifacts", (page) => row(page, "hello 1.0.0").getByText("verified")],
  [`P/artifacts/${artifact}`, (page) => row(page, "the registry has the bytes"), "artifact"],
  ["P/artifacts?view=keys", (page) => row(page, "release-key")],
  ["platform/nodes", (page) => page.getByRole("article").filter({ hasText: "Heartbeat" }), "nodes"],
  ["platform/allocations", (page) => row(page, "example").getByText("active")],
  ["P/members", (page) => page.getByRole("combobox", { name: "Role of viewer" })],
  ["P/service-accounts", (page) => row(page, "night-watch")],
  ["P/audit", (page) => row(page, "create webhook").first()],
  ["P/schedules", (page) => page.getByText("This page is of the whole platform")],
  ["nowhere/runs", (page) => page.getByRole("heading", { name: "There is nothing for you here" })],
];

await withBrowser(async (browser) => {
  for (const colorScheme of ["light", "dark"]) await atTheDoor(browser, colorScheme);
  const desk = await signedIn(browser, "admin");
  const receiver = await receiving();
  const pages = pagesOf(await fill(desk, receiver));
  await walk(desk, pages, "light", { pictured: true });
  await aRun(desk, { pictured: true });
  await dialogs(desk);
  await desk.getByRole("button", { name: "Use the dark theme" }).click();
  await walk(desk, pages, "dark");
  await aRun(desk);
  noComplaints(desk);

  for (const colorScheme of ["light", "dark"]) {
    const hand = await signedIn(browser, "admin", { viewport: HAND, colorScheme });
    await walk(hand, pages, `${colorScheme} in a hand`);
    await aRun(hand);
    await hand.getByRole("button", { name: "Menu" }).click();
    await accessible(hand, "the menu in a hand");
    await hand.getByRole("link", { name: "Catalog" }).click();
    await hand.getByRole("heading", { name: "Catalog" }).waitFor();
    noComplaints(hand);
  }
  receiver.end();
});

/** Before anybody is known, and after. */
async function atTheDoor(browser, colorScheme) {
  for (const viewport of [undefined, HAND]) {
    const page = await person(browser, { colorScheme, ...(viewport ? { viewport } : {}) });
    await page.goto(`${ready.api_url}/`);
    await page.getByLabel("Password").waitFor();
    await accessible(page, `the sign-in, ${colorScheme}`);
    await fits(page, "the sign-in");
    await page.goto(at("signed-out"));
    await page.getByRole("link", { name: "Sign in again" }).waitFor();
    await accessible(page, `signed out, ${colorScheme}`);
    await fits(page, "signed out");
    noComplaints(page);
  }
}

async function walk(page, pages, how, { pictured = false } = {}) {
  for (const [path, shown, name] of pages) {
    await page.goto(at(path));
    await shown(page).waitFor();
    await accessible(page, `${path}, ${how}`);
    await fits(page, `${path}, ${how}`);
    if (name && pictured) await picture(page, name);
  }
}

/** The page of a run, of one that was undone and of one that waits. */
async function aRun(page, { pictured = false } = {}) {
  await page.goto(at("P/runs?correlation_id=demo-tour-shelf"));
  await row(page, "compensated").getByRole("link", { name: /demo\.tour/ }).first().click();
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
  if (pictured) await picture(page, "run");
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
}

/** Made, read once, rotated, turned off, and gone. */
async function webhook(page) {
  await page.goto(at("P/webhooks"));
  await page.getByRole("button", { name: "New webhook" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Address/).fill("https://hooks.example.com/gpuaas");
  await dialog.getByLabel(/What it is for/).fill("Another pager");
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
  await row(page, "Pager of the night shift").waitFor();
  await row(page, "hooks.example.com").waitFor({ state: "detached" });
}

async function budget(page) {
  await page.goto(at("P/usage"));
  await page.getByRole("button", { name: "Set the budget" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/At most a month/).fill("much");
  await dialog.getByText("An amount such as").waitFor();
  await dialog.getByLabel(/At most a month/).fill("250");
  await dialog.getByLabel("When it is reached").selectOption("stop");
  await accessible(page, "the budget");
  await dialog.getByRole("button", { name: "Set", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Budget" }).getByText("decommission what runs").waitFor();
}
