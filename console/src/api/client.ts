// One way to ask the API. The session travels as a cookie that scripts cannot read; a change also carries the token that
// only a page of this origin can get, and a key, so that sending it twice does it once.
import type { ErrorEnvelope } from "./types";

export const ROOT = "/api/v1";

export interface Session {
  csrf_token: string;
  expires_at: string;
}

/** A refusal of the API, or no answer at all. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly correlationId: string | null,
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
  }

  get signedOut(): boolean {
    return this.status === 401;
  }
}

let session: Promise<Session | null> | null = null;

export function currentSession(): Promise<Session | null> {
  session ??= fetch("/console/session").then(async (answer) => {
    if (!answer.ok) throw await refusal(answer);
    return ((await answer.json()) as { session: Session | null }).session;
  });
  session.catch(() => {
    session = null;
  });
  return session;
}

export function signInAddress(): string {
  const here = location.pathname + location.search;
  return `/console/login?return_to=${encodeURIComponent(here)}`;
}

/** A session that has ended is begun again where the person was; the issuer often needs to ask nothing. */
export function leaveIfSignedOut(error: unknown) {
  if (error instanceof ApiError && error.signedOut) location.assign(signInAddress());
}

export async function signOut(): Promise<void> {
  const token = (await currentSession())?.csrf_token ?? "";
  await fetch("/console/logout", { method: "POST", headers: { "x-csrf-token": token } });
  session = null;
}

type Query = Record<string, string | number | undefined>;

export function address(path: string, query: Query = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${ROOT}${path}?${text}` : `${ROOT}${path}`;
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return answered<T>(await sent(address(path, query), { signal }));
}

export async function post<T>(path: string, body: unknown, key: string): Promise<T> {
  return change<T>("POST", path, body, key);
}

export async function change<T>(method: string, path: string, body: unknown, key: string): Promise<T> {
  const headers: Record<string, string> = {
    "x-csrf-token": (await currentSession())?.csrf_token ?? "",
    "x-idempotency-key": key,
  };
  if (body !== undefined) headers["content-type"] = "application/json";
  const init = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) };
  return answered<T>(await sent(address(path), init));
}

async function sent(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "no_answer", "The server does not answer. It is asked again by itself.", null);
  }
}

async function answered<T>(answer: Response): Promise<T> {
  if (!answer.ok) throw await refusal(answer);
  return answer.status === 204 ? (undefined as T) : ((await answer.json()) as T);
}

async function refusal(answer: Response): Promise<ApiError> {
  const envelope = (await answer.json().catch(() => null)) as ErrorEnvelope | null;
  const correlationId = envelope?.correlation_id ?? answer.headers.get("x-correlation-id");
  if (!envelope)
    return new ApiError(answer.status, "unreadable", `The server answered ${answer.status}.`, correlationId);
  const details = (envelope.details ?? {}) as Record<string, unknown>;
  return new ApiError(answer.status, envelope.code, envelope.message, correlationId, details);
}
