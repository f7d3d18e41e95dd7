// What somebody asks for when they deploy, and the request that it makes. What is left open the server decides.
import type { Explanation, ModePair } from "../api/types";

export interface Wish {
  name: string;
  /** Empty lets the server choose. */
  allocation: string;
  /** By name of the resource; empty is the version's own default. */
  resources: Record<string, string>;
  pair: ModePair | undefined;
  variant: string;
  /** One specifier per line. */
  packages: string;
  config: Record<string, unknown>;
}

export type Refusal = { pointer: string; message: string };

export const RESOURCES = [
  ["gpu_count", "GPUs"],
  ["cpu_cores", "CPU cores"],
  ["memory_gib", "Memory, GiB"],
] as const;

export function emptyWish(explained: Explanation): Wish {
  return {
    name: explained.app_slug,
    allocation: "",
    resources: {},
    pair: explained.supported[0],
    variant: "",
    packages: "",
    config: {},
  };
}

export function request(slug: string, version: string, wish: Wish) {
  const sizes = RESOURCES.flatMap(([name]) => {
    const text = wish.resources[name];
    return text ? [[name, Number(text)]] : [];
  });
  const packages = wish.packages.split("\n").flatMap((line) => line.trim() || []);
  return {
    app_slug: slug,
    version,
    display_name: wish.name.trim(),
    ...(wish.pair ?? {}),
    ...(wish.allocation ? { placement_intent: { allocation_id: wish.allocation } } : {}),
    ...(sizes.length > 0 ? { resources: Object.fromEntries(sizes) } : {}),
    ...(wish.variant ? { variant: wish.variant } : {}),
    ...(packages.length > 0 ? { packages } : {}),
    ...(Object.keys(wish.config).length > 0 ? { config: wish.config } : {}),
  };
}

const FLAGS = [
  ["gpu_count", "--gpus"],
  ["cpu_cores", "--cpus"],
  ["memory_gib", "--memory"],
] as const;

/** The same for a terminal; null where the command has no word for what is asked. */
export function command(slug: string, version: string, wish: Wish, usual: ModePair | undefined): string | null {
  const plain = Object.entries(wish.config).every(([, value]) => typeof value !== "object" || value === null);
  if (wish.variant || wish.packages.trim() || !plain || JSON.stringify(wish.pair) !== JSON.stringify(usual))
    return null;
  const words = ["gpuaas up", slug, "--version", version, "--name", quoted(wish.name.trim())];
  for (const [name, flag] of FLAGS) if (wish.resources[name]) words.push(flag, wish.resources[name]);
  if (wish.allocation) words.push("--allocation", wish.allocation);
  for (const [name, value] of Object.entries(wish.config)) {
    if (value !== undefined && value !== null) words.push("--config", quoted(`${name}=${value}`));
  }
  return words.join(" ");
}

/** As a shell takes it for one word. */
function quoted(text: string): string {
  return /^[\w.:=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** What the server said of single fields. */
export function refusals(details: Record<string, unknown>): Refusal[] {
  return Array.isArray(details.errors) ? (details.errors as Refusal[]) : [];
}
