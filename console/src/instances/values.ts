// The values of an instance that are JSON to the API, read with care: what is not there is not shown.
import { counted } from "../runtime";

interface Resources {
  gpu_count?: unknown;
  cpu_cores?: unknown;
  memory_gib?: unknown;
}

/** `2 GPUs, 4 cores, 16 GiB` */
export function sizes(resources: unknown): string | null {
  if (typeof resources !== "object" || resources === null) return null;
  const { gpu_count, cpu_cores, memory_gib } = resources as Resources;
  const parts = [
    typeof gpu_count === "number" && gpu_count > 0 ? counted(gpu_count, "GPU") : null,
    typeof cpu_cores === "number" ? counted(cpu_cores, "core") : null,
    typeof memory_gib === "number" ? `${memory_gib} GiB` : null,
  ];
  return parts.filter(Boolean).join(", ") || null;
}

export interface LastOperation {
  kind: string;
  status: string;
  version?: string;
  run_id?: string;
}

export function lastOperation(value: unknown): LastOperation | null {
  if (typeof value !== "object" || value === null) return null;
  const { kind, status } = value as Record<string, unknown>;
  return typeof kind === "string" && typeof status === "string" ? (value as LastOperation) : null;
}

/** The JSON inside base64url, or null if it is none. */
export function opened(payload: string): unknown {
  try {
    const bytes = Uint8Array.from(atob(payload.replaceAll("-", "+").replaceAll("_", "/")), (char) =>
      char.charCodeAt(0),
    );
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}
