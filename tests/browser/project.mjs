// What a project's own admin keeps, and what the platform gives it: members, machines, webhooks and what was sent to them,
// parts of nodes, money.
import assert from "node:assert/strict";
import { accessible, at, copied, fits, forgive, noComplaints, PLACE, row, send, signedIn, until, withBrowser } from "./browser.mjs";
import { allowPrivateAddresses, receiving } from "./filled.mjs";

await withBrowser(async (browser) => {
  const admin = await signedIn(browser, "admin");
  await allowPrivateAddresses(admin);
  const manager = await signedIn(browser, "project-admin");
  await members(manager);
  await machines(manager);
  await webhooks(manager);
  noComplaints(manager);
  await allocations(admin);
  await ledger(admin);
  await acrossProjects(admin);
  noComplaints(admin);
});

async function members(page) {
  await page.goto(at("P/members"));
  await page.getByRole("button", { name: "Add a member" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Name at the issuer/).fill("nobody-yet");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await dialog.getByRole("alert").getByText(/nobody-yet|username|user/).waitFor();
  forgive(page, 404);
  forgive(page, 400);
  await dialog.getByLabel(/Name at the issuer/).fill("admin");
  assert.match(await copied(dialog, "Copy as curl"), /"username":"admin"/);
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  const role = page.getByRole("combobox", { name: "Role of admin" });
  const changed = page.waitForResponse((answer) => answer.request().method() === "PATCH" && answer.ok());
  await role.selectOption("operator");
  await changed;
  await page.reload();
  await role.waitFor();
  assert.equal(await role.inputValue(), "operator");
  await row(page, /^admin/).getByRole("button", { name: "Remove" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await role.waitFor({ state: "detached" });
}

/** At most what its maker holds, fewer where they say so; and gone when it is deleted. */
async function machines(page) {
  await page.goto(at("P/service-accounts"));
  await page.getByRole("button", { name: "New service account" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Meter reader");
  const chosen = dialog.getByRole("checkbox", { checked: true });
  assert.ok((await chosen.count()) > 5, "what is usual is chosen");
  await dialog.evaluate((form) => form.querySelectorAll("input:checked").forEach((one) => one.click()));
  assert.equal(await chosen.count(), 0);
  await dialog.locator("section").filter({ hasText: "billing.usage" }).getByRole("checkbox", { name: "read" }).check();
  await accessible(page, "a new service account");
  await fits(page, "a new service account");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: "I have kept it" }).click();
  const line = row(page, "meter-reader");
  await line.getByText("1 permission").click();
  await line.getByText("billing.usage.read").waitFor();
  await line.getByRole("button", { name: "Disable" }).click();
  await dialog.getByRole("button", { name: "Disable" }).click();
  await line.getByText("disabled").waitFor();
  await line.getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await line.waitFor({ state: "detached" });
}

/** A refused address is named; what arrived can be sent once more. */
async function webhooks(page) {
  const receiver = await receiving();
  await page.goto(at("P/webhooks"));
  await page.getByRole("button", { name: "New webhook" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Address/).fill("https://somebody:secret@example.com/");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByRole("alert").getByText("/url").waitFor();
  forgive(page, 400);
  await dialog.getByLabel(/Address/).fill(receiver.url);
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: "I have kept it" }).click();
  await row(page, receiver.url).getByRole("link").click();
  await page.getByRole("heading", { name: receiver.url }).waitFor();
  await page.getByRole("button", { name: "Change", exact: true }).click();
  await dialog.getByLabel(/What it is for/).fill("The night shift");
  await dialog.getByRole("button", { name: "Change", exact: true }).click();
  await page.getByText("The night shift").waitFor();
  await send(page, `/projects/${PLACE}/apps/entitlements/jupyterlab`, { enabled: true, policy_overrides: {} }, "PUT");
  const line = row(page, "apps.entitlement.changed");
  await line.getByText("delivered").waitFor();
  await line.getByRole("button", { name: "Send again" }).click();
  await dialog.getByRole("button", { name: "Send again" }).click();
  await until("it is sent once more", () => receiver.heard.length === 2);
  assert.equal(receiver.heard[0], receiver.heard[1], "the same event under the same id");
  await page.getByRole("link", { name: "Given up" }).click();
  await page.getByText("Nothing was given up on").waitFor();
  await page.getByRole("button", { name: "Send all again" }).click();
  await dialog.getByRole("button", { name: "Send again" }).click();
  await dialog.waitFor({ state: "detached" });
  receiver.end();
}

/** A part of a node is taken back and another one given; what was taken back is there for who asks for it. */
async function allocations(page) {
  await page.goto(at("platform/allocations"));
  await row(page, "active").getByRole("button", { name: "Release" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Release" }).click();
  await page.getByText("No allocation", { exact: true }).waitFor();
  await page.getByLabel("Also released").check();
  await row(page, "example").getByText("released").waitFor();

  await page.getByRole("button", { name: "New allocation" }).click();
  await dialog.getByLabel("The whole node").uncheck();
  await dialog.getByLabel("Cores").fill("1");
  await dialog.getByLabel("Memory, GiB").fill("2");
  await accessible(page, "a new allocation");
  await dialog.getByRole("button", { name: "Allocate" }).click();
  await dialog.waitFor({ state: "detached" });
  await row(page, "2 GiB").getByText("active").waitFor();
  assert.match(await page.locator("tbody tr").first().innerText(), /2 GiB/, "the newest is first");
}

async function ledger(page) {
  const credit = { amount_minor: 100_000, currency: "EUR", reason: "Invoice 17 was paid" };
  await send(page, `/admin/projects/${PLACE}/credits`, credit);
  await page.goto(at("P/usage"));
  await page.getByRole("link", { name: "Ledger" }).click();
  await row(page, "credit").getByText(/1,000\.00/).waitFor();
  await accessible(page, "a ledger");
}

/** Runs of all projects, then of one; the place changes and what was chosen stays. */
async function acrossProjects(page) {
  await page.goto(at("platform/runs?kind=demo.tour"));
  await page.getByRole("combobox", { name: "Project" }).nth(1).selectOption({ label: "example" });
  await page.waitForURL((url) => url.searchParams.get("project_id") === PLACE);
  await row(page, "demo-tour-lamp").first().waitFor();
  await page.locator(".place select").selectOption({ label: "example" });
  await page.waitForURL((url) => url.pathname.includes(PLACE) && url.search === "?kind=demo.tour");
  await row(page, "demo-tour-lamp").first().waitFor();
}
