// A real browser for the journeys: Debian's Chromium, a new profile each time, and a page that may not complain. Whatever
// the console logs as an error fails the journey that caused it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const ready = JSON.parse(readFileSync(process.env.GPUAAS_READY_FILE, "utf8"));
export const PLACE = ready.project_id;
const PATIENCE = 20_000;

export async function withBrowser(journey) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-sync",
      "--disable-component-update", "--no-first-run", "--mute-audio"],
  });
  try {
    await journey(browser);
  } finally {
    await browser.close();
    process.stdin.destroy();
  }
}

export const DESK = { width: 1280, height: 800 };
export const HAND = { width: 390, height: 844 };

/** A person at a screen of their own, whom nobody knows yet. What the page complains of is kept. */
export async function person(browser, options = {}) {
  const context = await browser.newContext({
    viewport: DESK,
    colorScheme: "light",
    permissions: ["clipboard-read", "clipboard-write"],
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error") page.complaints.push(message.text());
  });
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  return page;
}

/** The same, signed in through the issuer's page. */
export async function signedIn(browser, username, options = {}) {
  const page = await person(browser, options);
  await page.goto(`${ready.api_url}/`);
  await page.getByLabel("Name").fill(username);
  await page.getByLabel("Password").fill(username);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
  return page;
}

/** No rule that axe calls serious or critical is broken. Evaluated by the debugger, which the page's policy does not bind. */
export async function accessible(page, where) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() =>
    globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] }),
  );
  const serious = found.violations.filter((one) => one.impact === "serious" || one.impact === "critical");
  const told = serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" | ")}`);
  assert.deepEqual(told, [], where);
}

export function noComplaints(page) {
  assert.deepEqual(page.complaints, []);
}

/** Nothing stands out to the side of the screen. */
export async function fits(page, where) {
  const { width } = page.viewportSize();
  const drawn = await page.evaluate(() => document.documentElement.scrollWidth);
  if (drawn <= width) return;
  const widest = await page.evaluate((width) => {
    const out = [...document.querySelectorAll("body *")].filter((one) => one.getBoundingClientRect().right > width);
    return out.slice(-3).map((one) => one.outerHTML.slice(0, 160));
  }, width);
  assert.fail(`${where} is ${drawn} px wide on a screen of ${width}: ${widest.join("\n")}`);
}

/** Where a page of the console is. `P` stands for the project. */
export function at(path) {
  return `${ready.api_url}/console/${path.replace(/^P\b/, PLACE)}`;
}

const PICTURES = [
  "runs", "run", "version", "catalog", "nodes", "artifact", "schedules", "failed", "instance-small",
  "trace-life", "trace-life-dark", "usage", "usage-small", "failures", "refused",
];

/** Kept only when somebody asks for new pictures, and only those that the documentation shows. */
export async function picture(page, name) {
  const folder = process.env.GPUAAS_SCREENSHOTS;
  if (!folder || !PICTURES.includes(name)) return;
  await page.screenshot({ path: `${folder}/${name}.png`, animations: "disabled" });
}

export function row(page, text) {
  return page.getByRole("row").filter({ hasText: text });
}

/** Opens the newest run of a demo tour from the list, as its correlation id stands there. */
export async function openRun(page, correlationId) {
  await row(page, correlationId).getByRole("link", { name: /demo\.tour/ }).first().click();
  await page.getByRole("heading", { name: "Steps" }).waitFor();
}

/** Presses a button, and says yes to the question that it asks. */
export async function ask(page, action, reason) {
  await page.getByRole("button", { name: action, exact: true }).click();
  const dialog = page.getByRole("dialog");
  if (reason) await dialog.getByLabel(/Reason/).fill(reason);
  await dialog.getByRole("button", { name: action, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
}

/** What the page is about has come to this state. */
export async function state(page, word) {
  await page.locator(".head .state").filter({ hasText: word }).first().waitFor();
}

/** What a button puts on the clipboard. */
export async function copied(where, button) {
  await where.getByRole("button", { name: button }).click();
  await where.getByRole("button", { name: button }).getByText("copied").waitFor();
  const page = "page" in where ? where.page() : where;
  return page.evaluate(() => navigator.clipboard.readText());
}

/** A request to the API as whoever is signed in, where a journey needs something that is no part of it. */
export async function send(page, path, body, method = "POST", type = "application/json") {
  return page.evaluate(
    async ({ path, body, method, type }) => {
      const { session } = await (await fetch("/console/session")).json();
      const headers = { "x-csrf-token": session.csrf_token, "content-type": type };
      const answer = await fetch(`/api/v1${path}`, { method, headers, body });
      const told = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path}: ${told}`);
      return told ? JSON.parse(told) : null;
    },
    { path, body: type === "application/json" && body ? JSON.stringify(body) : body, method, type },
  );
}

/** Waits for what no page shows. */
export async function until(what, holds) {
  for (const end = Date.now() + PATIENCE; !(await holds()); ) {
    assert.ok(Date.now() < end, what);
    await new Promise((later) => setTimeout(later, 100));
  }
}

/** The browser itself notes every refusal; one that was provoked is no complaint. */
export function forgive(page, status) {
  page.complaints = page.complaints.filter((complaint) => !complaint.includes(String(status)));
}

let replies;

/** Tells the node of the story what to do next, where it obeys, and goes on when it knows. */
export async function node(word) {
  replies ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  process.stdout.write(`${word}\n`);
  await replies.next();
}
