// What somebody asks for when they deploy, and the request that it makes. What is left open the server decides.
import type { Explanation, ModePair } from "../api/types";

export interface Wish {
  name: string;
  /** Empty lets the server choose. */
  allocation: string;
  /** What the version's own schema of placement asks, where it asks more than an allocation. */
  placement: Record<string, unknown>;
  /** By name of the resource; empty is the version's own default. */
  resources: Record<string, string>;
  /** Without one the server takes the first that the project's policy allows. */
  pair: ModePair | undefined;
  variant: string;
  /** An artifact to run instead of the one that is frozen for the version. */
  artifact: string;
  /** One specifier per line. */
  packages: string;
  /** By class of the version's credentials, one of the project's own. */
  credentials: Record<string, string>;
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
    placement: {},
    resources: {},
    pair: undefined,
    variant: "",
    artifact: "",
    packages: "",
    credentials: {},
    config: {},
  };
}

export function request(slug: string, version: string, wish: Wish) {
  const sizes = Object.entries(wish.resources).flatMap(([name, text]) => (text ? [[name, Number(text)]] : []));
  const packages = packagesOf(wish);
  const credentials = credentialsOf(wish);
  const placement = wish.allocation ? { allocation_id: wish.allocation } : said(wish.placement);
  return {
    app_slug: slug,
    version,
    display_name: wish.name.trim(),
    ...(wish.pair ?? {}),
    ...(Object.keys(placement).length > 0 ? { placement_intent: placement } : {}),
    ...(sizes.length > 0 ? { resources: Object.fromEntries(sizes) } : {}),
    ...(wish.variant ? { variant: wish.variant } : {}),
    ...(wish.artifact ? { artifact_id: wish.artifact } : {}),
    ...(packages.length > 0 ? { packages } : {}),
    ...(credentials.length > 0 ? { credentials: Object.fromEntries(credentials) } : {}),
    ...(Object.keys(wish.config).length > 0 ? { config: wish.config } : {}),
  };
}

const packagesOf = (wish: Wish) => wish.packages.split("\n").flatMap((line) => line.trim() || []);
const credentialsOf = (wish: Wish) => Object.entries(wish.credentials).filter(([, id]) => id);

/** A form fills in lists that nobody touched; an empty one says nothing. */
function said(placement: Record<string, unknown>): Record<string, unknown> {
  const filled = ([, value]: [string, unknown]) => value !== undefined && !(Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(placement).filter(filled));
}

const FLAGS = [
  ["gpu_count", "--gpus"],
  ["cpu_cores", "--cpus"],
  ["memory_gib", "--memory"],
  ["host_port", "--port"],
] as const;

/** The same for a terminal; null where a version asks for a placement of its own, for which the command has no words. */
export function command(slug: string, version: string, wish: Wish): string | null {
  if (!wish.allocation && Object.keys(said(wish.placement)).length > 0) return null;
  const words = ["gpuaas up", slug, "--version", version, "--name", quoted(wish.name.trim())];
  const flag = (name: string, value: string | undefined) => value && words.push(name, quoted(value));
  flag("--mode", wish.pair?.operating_mode);
  flag("--scope", wish.pair?.control_plane_scope);
  for (const [name, spelled] of FLAGS) flag(spelled, wish.resources[name]);
  flag("--allocation", wish.allocation);
  flag("--variant", wish.variant);
  flag("--artifact", wish.artifact);
  for (const one of packagesOf(wish)) flag("--package", one);
  for (const [name, id] of credentialsOf(wish)) flag("--credential", `${name}=${id}`);
  for (const [name, value] of Object.entries(wish.config)) {
    if (value !== undefined && value !== null) flag("--config", `${name}=${written(value)}`);
  }
  return words.join(" ");
}

/** A text as it is; everything else as JSON, which is how the command reads it. */
const written = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));

/** As a shell takes it for one word. */
function quoted(text: string): string {
  return /^[\w.:=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** What the server said of single fields. */
export function refusals(details: Record<string, unknown>): Refusal[] {
  return Array.isArray(details.errors) ? (details.errors as Refusal[]) : [];
}

/** What was said of the fields below a pointer, by their pointers from there. */
export function below(pointer: string, refused: Refusal[]): Refusal[] {
  return refused
    .filter((one) => one.pointer.startsWith(`${pointer}/`))
    .map((one) => ({ ...one, pointer: one.pointer.slice(pointer.length) }));
}
