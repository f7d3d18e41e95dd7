// What the pages ask for, and how often. Lists look again every few seconds while somebody looks at them; a run that is
// open is followed by its stream.
import { keepPreviousData, queryOptions, useInfiniteQuery } from "@tanstack/react-query";
import type { Place } from "../place";
import { placesOf } from "../place";
import { get } from "./client";
import { everyPage } from "./everyPage";
import type {
  Allocation,
  App,
  Artifact,
  AuditEntry,
  CloudEvent,
  Instance,
  LedgerEntry,
  Me,
  Member,
  Node,
  Page,
  Project,
  Run,
  RunDetail,
  Schedule,
  ServiceAccount,
  SigningKey,
  Submission,
  TraceEntry,
  Version,
  Webhook,
  WebhookDelivery,
} from "./types";

export const OFTEN = 3000;
export const SELDOM = 15_000;

export const places = queryOptions({
  queryKey: ["places"],
  staleTime: 60_000,
  queryFn: async () => {
    const me = await get<Me>("/me");
    const platform = me.grants.some((grant) => !grant.org_id && grant.permissions.includes("allocations.read"));
    const projects = platform ? await everyPage<Project>("/admin/projects", {}) : { items: [], more: false };
    return { me, places: placesOf(me, projects.items), more: projects.more };
  },
});

export interface RunFilter {
  view?: "all" | "stuck";
  kind?: string;
  status?: string;
  cause?: string;
  subject?: string;
  correlation_id?: string;
  since?: string;
}

/** Only the platform has a list of its own for runs that want a person's eye; in a project the states say it. */
export function useRuns(place: Place, { view, ...filter }: RunFilter) {
  const stuck = view === "stuck";
  const path = stuck && place.isPlatform ? "/workflows/stuck" : "/workflows";
  const query = stuck && !place.isPlatform ? { ...filter, status: filter.status ?? "paused,stuck" } : filter;
  return useList<Run>(
    ["runs", place.id, stuck, query],
    place.path + path,
    { ...query, since: since(query.since) },
    OFTEN,
  );
}

export function useAudit(place: Place, filter: Record<string, string | undefined>) {
  const query = { ...filter, since: since(filter.since) };
  return useList<AuditEntry>(["audit", place.id, filter], `${place.path}/audit`, query, SELDOM);
}

export function useServiceAccounts(place: Place) {
  return useList<ServiceAccount>(["service-accounts", place.id], `${place.path}/service-accounts`, {}, SELDOM);
}

export function useMembers(place: Place) {
  return useList<Member>(["members", place.id], `${place.path}/members`, {}, SELDOM);
}

export function useSchedules(place: Place) {
  return useList<Schedule>(["schedules"], `${place.path}/schedules`, {}, OFTEN);
}

/** With a project, what it may deploy is told along; `all` is not narrowed to that. */
export function useApps(place: Place, all: boolean) {
  const view = place.isPlatform ? {} : { project_id: place.id, entitled: all ? undefined : "true" };
  return useList<App>(["apps", place.id, all], "/apps/catalog", view, SELDOM);
}

export function useVersions(slug: string) {
  return useList<Version>(["versions", slug], `/apps/catalog/${slug}/versions`, {}, OFTEN);
}

export function useSubmissions(place: Place) {
  return useList<Submission>(["submissions", place.id], `${place.path}/apps/submissions`, {}, SELDOM);
}

export interface InstanceFilter {
  status?: string;
  app?: string;
  version?: string;
  allocation?: string;
}

export function useInstances(place: Place, filter: InstanceFilter) {
  return useList<Instance>(["instances", place.id, filter], `${place.path}/app-instances`, { ...filter }, OFTEN);
}

export interface ArtifactFilter {
  app_slug?: string;
  app_version?: string;
  trust_state?: string;
  lifecycle_state?: string;
  digest?: string;
}

export function useArtifacts(place: Place, filter: ArtifactFilter) {
  return useList<Artifact>(["artifacts", place.id, filter], `${place.path}/app-artifacts`, { ...filter }, SELDOM);
}

export function useSigningKeys(place: Place) {
  return useList<SigningKey>(["signing-keys", place.id], `${place.path}/signing-keys`, {}, SELDOM);
}

export function useNodes(place: Place) {
  return useList<Node>(["nodes"], `${place.path}/nodes`, {}, OFTEN);
}

export function useAllocations(place: Place, filter: { status?: string } = {}) {
  return useList<Allocation>(["allocations", place.id, filter], `${place.path}/allocations`, filter, OFTEN);
}

/** Everything under one correlation id, wherever the caller may look. */
export function useTrace(id: string | undefined) {
  return useList<TraceEntry>(["trace", id], `/trace/${encodeURIComponent(id ?? "")}`, { limit: 200 }, OFTEN, !!id);
}

/** What was told of one instance, oldest first. */
export function useInstanceEvents(path: string) {
  return useList<CloudEvent>(["instance-events", path], `${path}/events`, { limit: 200 }, OFTEN);
}

export function useLedger(place: Place) {
  return useList<LedgerEntry>(["ledger", place.id], "/billing/ledger", { project_id: place.id }, SELDOM);
}

export function useWebhooks(place: Place) {
  return useList<Webhook>(["webhooks", place.id], `${place.path}/webhooks`, {}, SELDOM);
}

export function useDeliveries(path: string, status: string | undefined) {
  return useList<WebhookDelivery>(["deliveries", path, status], `${path}/deliveries`, { status }, OFTEN);
}

/** One thing by its address, looked at again while it is open. `name` is the first word by which it is renewed. */
export function oneOptions<T>(name: string, path: string, refetchInterval: number) {
  return queryOptions({
    queryKey: [name, path],
    queryFn: ({ signal }) => get<T>(path, {}, signal),
    refetchInterval,
  });
}

export function runOptions(place: Place, id: string) {
  return queryOptions({
    queryKey: ["run", place.id, id],
    queryFn: ({ signal }) => get<RunDetail>(`${place.path}/workflows/${id}`, {}, signal),
  });
}

type Narrowed = Record<string, string | number | undefined>;

/** A list that grows by pages. */
function useList<T>(key: unknown[], path: string, query: Narrowed, refetchInterval: number, enabled = true) {
  return useInfiniteQuery({
    queryKey: key,
    enabled,
    queryFn: ({ pageParam, signal }) => get<Page<T>>(path, { limit: 50, ...query, cursor: pageParam }, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    select: (data) => data.pages.flatMap((page) => page.items),
    placeholderData: keepPreviousData,
    refetchInterval,
  });
}

/** `15m`, `24h` and `7d` before now, or a time as it is. Rounded to the minute, so that the list keeps its name. */
export function since(text: string | undefined): string | undefined {
  const relative = /^(\d+)([mhd])$/.exec(text ?? "");
  if (!relative) return text;
  const unit = { m: 60_000, h: 3_600_000, d: 86_400_000 }[relative[2] as "m" | "h" | "d"];
  const moment = Math.floor(Date.now() / 60_000) * 60_000 - Number(relative[1]) * unit;
  return new Date(moment).toISOString();
}
