// What a browser needs before somebody can work, told as JSON for `./dev bench console`. The database holds a long past and
// one run of many steps; every visit begins without anything kept from the one before.
import { at, signedIn, withBrowser } from "./browser.mjs";

const VISITS = Number(process.env.VISITS ?? 3);
const LONG_RUN = "P/runs/01970000-0000-7000-8000-00000000f500";
const SCROLL_MS = 4000;

await withBrowser(async (browser) => {
  const page = await signedIn(browser, "admin");
  const first_load_bytes = await firstLoad(page);
  const [interactive, long_run_drawn] = [[], []];
  for (let visit = 0; visit < VISITS; visit++) {
    interactive.push(await untilKeysWork(page));
    long_run_drawn.push(await untilDrawn(page));
  }
  await page.goto(at(LONG_RUN));
  await page.locator(".waterfall li").nth(499).waitFor({ state: "attached" });
  const scrolled = await scroll(page);
  const { frames: bare_frames } = await scroll(await bareList(page));
  console.log(JSON.stringify({ first_load_bytes, interactive, long_run_drawn, ...scrolled, bare_frames }));
});

/** Answers of the API are no part of it: they are what the page is for. */
async function firstLoad(page) {
  await forget(page);
  await page.goto(at("platform/runs"));
  await page.locator("a.row-link").first().waitFor();
  return page.evaluate(() => {
    const fetched = performance.getEntriesByType("resource").filter((one) => one.name.includes("/console/assets/"));
    const [document] = performance.getEntriesByType("navigation");
    return [document, ...fetched].reduce((sum, one) => sum + one.encodedBodySize, 0);
  });
}

/** From the beginning of the visit until a key has moved the focus to the first row. */
async function untilKeysWork(page) {
  await forget(page);
  await page.goto(at("platform/runs"), { waitUntil: "commit" });
  return page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    while (!document.activeElement?.matches("a.row-link")) {
      await frame();
      if (document.querySelector("a.row-link")) dispatchEvent(new KeyboardEvent("keydown", { key: "j" }));
    }
    await frame();
    return performance.now();
  });
}

async function untilDrawn(page) {
  await forget(page);
  await page.goto(at(LONG_RUN), { waitUntil: "commit" });
  return page.evaluate(async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    while (document.querySelectorAll(".waterfall li").length < 500) await frame();
    await frame();
    return performance.now();
  });
}

/** The reference: as many lines of words, as tall, and nothing else. What it costs to show them is the machine's. */
async function bareList(page) {
  const height = await page.locator(".waterfall li").first().evaluate((line) => line.getBoundingClientRect().height);
  const bare = await page.context().newPage();
  const lines = Array.from({ length: 500 }, (_, n) => `<li style="height: ${height}px">step ${n}</li>`);
  await bare.setContent(`<ul>${lines.join("")}</ul>`);
  return bare;
}

/** Down and up again, as a wheel does it. */
async function scroll(page) {
  await page.waitForTimeout(1000);
  return page.evaluate(async (during) => {
    const long_tasks = [];
    const observer = new PerformanceObserver((list) => {
      for (const task of list.getEntries()) long_tasks.push(task.duration);
    });
    observer.observe({ entryTypes: ["longtask"] });
    const frames = [];
    const began = performance.now();
    let [last, by] = [began, 60];
    while (last - began < during) {
      const now = await new Promise((done) => requestAnimationFrame(done));
      frames.push(now - last);
      last = now;
      const end = document.documentElement.scrollHeight - innerHeight;
      if (scrollY >= end) by = -60;
      if (scrollY <= 0) by = 60;
      scrollBy(0, by);
    }
    observer.disconnect();
    return { frames: frames.slice(1), long_tasks };
  }, SCROLL_MS);
}

/** The next visit fetches everything again. */
async function forget(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.clearBrowserCache");
  await session.detach();
}
