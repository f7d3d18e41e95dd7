// A project that was worked in: an instance that runs and one that ended, money that was spent, a webhook that was called,
// a key, a machine, something sent for review and something that waits for an operator. Made by the API, as its admin.
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { PLACE, send, until } from "./browser.mjs";

const P = `/projects/${PLACE}`;

/** Answers what pages need to find all this. */
export async function fill(page, receiver) {
  await allowPrivateAddresses(page);
  const hook = { url: receiver.url, description: "Pager of the night shift", event_types: [] };
  const webhook = (await send(page, `${P}/webhooks`, hook)).id;
  const wish = { app_slug: "hello", version: "1.0.0" };
  const instance = (await send(page, `${P}/app-instances?wait=60s`, { ...wish, display_name: "front-desk" })).id;
  const gone = (await send(page, `${P}/app-instances?wait=60s`, { ...wish, display_name: "back-room" })).id;
  await send(page, `${P}/app-instances/${gone}/decommission?wait=60s`, {});
  await spend(page, instance);
  await send(page, `${P}/service-accounts`, { name: "Night watch", description: "Looks at everything" });
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = publicKey.export({ type: "spki", format: "pem" });
  await send(page, `${P}/signing-keys`, { name: "release-key", public_key_pem: pem });
  const submission = (await send(page, `${P}/apps/manifests`, nextManifest("1.9.0", "Greets in more languages."), "POST", "application/yaml")).id;
  const artifact = (await send(page, `${P}/app-artifacts`, undefined, "GET")).items[0].id;
  await restingRun(page);
  await until("the webhook is called", () => receiver.heard.length > 0);
  return { instance, gone, webhook, submission, artifact };
}

/** A further version of hello, as an app team would send it. */
export function nextManifest(version, notes) {
  const text = readFileSync(new URL("../../apps/hello/manifest.yaml", import.meta.url), "utf8");
  return text.replace("version: 1.0.0", `version: ${version}`).replace("The first release.", notes);
}

/** The receiver of a journey stands on this very machine. */
export async function allowPrivateAddresses(page) {
  await send(page, `/admin/policies/project/${PLACE}/webhooks.allow_private_addresses`, { value: true }, "PUT");
}

/** A price, a budget, a credit, and a day of requests that the instance counted. */
export async function spend(page, instance) {
  const price = { model: "per_unit", currency: "EUR", effective_from: "2026-01-01T00:00:00Z" };
  const of = { usage_source: "app_runtime", usage_unit: "requests", covers: "service", amount_minor: 2, per: 100 };
  await send(page, "/admin/prices", { ...price, ...of });
  await send(page, `${P}/budget`, { amount_minor: 25_000, action: "deny_new", mode: "enforce" }, "PUT");
  await send(page, `/admin${P}/credits`, { amount_minor: 100_000, currency: "EUR", reason: "Invoice 17 was paid" });
  const events = Array.from({ length: 22 }, (_, hour) => ({
    specversion: "1.0",
    type: "app.usage",
    source: "front-desk",
    id: `hour-${hour}`,
    time: new Date(Date.now() - (hour + 1) * 3_600_000).toISOString(),
    subject: instance,
    data: { usage_unit: "requests", quantity: 300 + Math.round(240 * Math.sin(hour / 3.5)) },
  }));
  const { results } = await send(page, `${P}/usage-events`, events);
  const refused = results.filter((one) => one.verdict === "rejected");
  if (refused.length > 0) throw new Error(JSON.stringify(refused));
}

/** A tour that was begun again and paused: it needs somebody. */
async function restingRun(page) {
  const tour = async () => (await send(page, "/admin/workflows?correlation_id=demo-tour-shelf", undefined, "GET")).items[0];
  await until("the tour of the shelf is over", async () => (await tour()).status === "compensated");
  const again = await send(page, `/admin/workflows/${(await tour()).id}/retry`, {});
  await send(page, `/admin/workflows/${again.id}/pause`, {});
}

/** Takes what a webhook sends, and answers as it is told to. */
export async function receiving() {
  const receiver = { heard: [], answer: 200 };
  const server = createServer((request, response) => {
    request.resume();
    request.on("end", () => {
      receiver.heard.push(request.headers["webhook-id"]);
      response.writeHead(receiver.answer).end();
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  receiver.url = `http://127.0.0.1:${server.address().port}/gpuaas`;
  receiver.end = () => server.close();
  return receiver;
}
