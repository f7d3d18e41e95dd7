// What the pages ask for, and how often. Lists look again every few seconds while somebody looks at them; a run that is
// open is followed by its stream.
import { keepPreviousData, queryOptions, useInfiniteQuery } from "@tanstack/react-query";
import type { Place } from "../place";
import { placesOf } from "../place";
import { get } from "./client";
import { everyPage } from "./everyPage";
import {
  type Allocation,
  type App,
  type Artifact,
  type AuditEntry,
  type CloudEvent,
  type Instance,
  type LedgerEntry,
  LIVING_ALLOCATIONS,
  LIVING_INSTANCES,
  type Me,
  type Member,
  type Node,
  type Page,
  type Project,
  type Release,
  type Run,
  type RunDetail,
  type Schedule,
  type ServiceAccount,
  type SigningKey,
  type Submission,
  type TraceEntry,
  type Version,
  type Webhook,
  type WebhookDelivery,
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

/** The newest releases of the platform. */
export const releases = queryOptions({
  queryKey: ["releases"],
  queryFn: async () => (await get<Page<Release>>("/platform/releases")).items,
});

export interface RunFilter {
  view?: "stuck" | "failed";
  kind?: string;
  status?: string;
  cause?: string;
  subject?: string;
  correlation_id?: string;
  since?: string;
  /** One of all projects, where all are listed. */
  project_id?: string;
}

/** Only the platform has a list of its own for runs that want a person's eye; in a project the states say it. */
export function useRuns(place: Place, { view, ...filter }: RunFilter) {
  const path = view === "stuck" && place.isPlatform ? "/workflows/stuck" : "/workflows";
  const query = { ...filter, ...statesOf(view, place, filter.status) };
  return useList<Run>(
    ["runs", place.id, view, query],
    place.path + path,
    { ...query, since: since(query.since) },
    OFTEN,
  );
}

/** What failed is of interest until it was tried again. */
function statesOf(view: RunFilter["view"], place: Place, chosen: string | undefined) {
  if (view === "failed") return { status: "failed,compensated", latest: "true" };
  return view === "stuck" && !place.isPlatform ? { status: chosen ?? "paused,stuck" } : {};
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
  /** Also those that have ended. */
  ended?: true;
}

/** Newest first. Those that have ended pile up, and are there for who asks for them. */
export function useInstances(place: Place, { ended, ...filter }: InstanceFilter) {
  const status = filter.status ?? (ended ? undefined : LIVING_INSTANCES.join());
  const query = { ...filter, status, order: "newest" };
  return useList<Instance>(["instances", place.id, query], `${place.path}/app-instances`, query, OFTEN);
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

export interface AllocationFilter {
  status?: string;
  /** Also those that were given back. */
  ended?: true;
}

/** Newest first, as instances are. */
export function useAllocations(place: Place, { ended, ...filter }: AllocationFilter) {
  const status = filter.status ?? (ended ? undefined : LIVING_ALLOCATIONS.join());
  const query = { status, order: "newest" };
  return useList<Allocation>(["allocations", place.id, query], `${place.path}/allocations`, query, OFTEN);
}

/** Everything under one correlation id, wherever the caller may look. */
export function useTrace(id: string | undefined) {
  return useList<TraceEntry>(["trace", id], `/trace/${encodeURIComponent(id ?? "")}`, { limit: 200 }, OFTEN, !!id);
}

/** What was told of one instance, newest first. */
export function useInstanceEvents(place: Place, instance: string) {
  return useList<CloudEvent>(["instance-events", instance], `${place.path}/events`, eventsOf(instance), OFTEN);
}

export function eventsOf(instance: string) {
  return { subject: instance, order: "newest" };
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
