// Lists that are used as a whole, because something is chosen from them, found in them or counted by them.
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { HELD } from "../nodes/packing";
import { may, type Place } from "../place";
import { everyPage, type Whole } from "./everyPage";
import { OFTEN, SELDOM } from "./queries";
import type { AccessCredential, Allocation, Artifact, Entitlement, Instance, Node, UsageSum, Version } from "./types";

/** The allocations on which something can be placed. */
export function useActiveAllocations(place: Place) {
  return useWhole<Allocation>(["allocations", place.id], `${place.path}/allocations`, { status: "active" });
}

/** The allocations that take room on a node. Those that are over are far more, and are not asked for. */
export function useHeldAllocations(place: Place) {
  return useQuery({
    queryKey: ["allocations", place.id, "whole", "held"],
    queryFn: async ({ signal }): Promise<Whole<Allocation>> => {
      const path = `${place.path}/allocations`;
      const lists = await Promise.all(HELD.map((status) => everyPage<Allocation>(path, { status }, signal)));
      return { items: lists.flatMap((list) => list.items), more: lists.some((list) => list.more) };
    },
    refetchInterval: SELDOM,
  });
}

export function useEveryNode(place: Place) {
  return useWhole<Node>(["nodes"], `${place.path}/nodes`, {}, { every: OFTEN });
}

export function useEntitlements(place: Place) {
  return useWhole<Entitlement>(["entitlements", place.id], `${place.path}/apps/entitlements`);
}

/** What the project may deploy of an app, canaries included. */
export function useOfferedVersions(place: Place, slug: string) {
  const view = { project_id: place.id, entitled: "true" };
  return useWhole<Version>(["versions", slug, place.id], `/apps/catalog/${slug}/versions`, view);
}

export function useEveryInstance(place: Place, wanted: boolean) {
  return useWhole<Instance>(["instances", place.id], `${place.path}/app-instances`, {}, { wanted });
}

/** The secrets and keys that the project keeps, without what is in them. */
export function useAccessCredentials(place: Place, wanted: boolean) {
  const readable = may(place, "iam.credential.read");
  return useWhole<AccessCredential>(
    ["access-credentials", place.id],
    `${place.path}/access-credentials`,
    {},
    { wanted: wanted && readable },
  );
}

/** What this project itself published for a version. */
export function useArtifactsOf(place: Place, slug: string, version: string) {
  const query = { app_slug: slug, app_version: version, trust_state: "verified" };
  const wanted = may(place, "apps.artifact.read");
  return useWhole<Artifact>(["artifacts", place.id], `${place.path}/app-artifacts`, query, { wanted });
}

export interface UsageQuery {
  window: string;
  from?: string;
  group_by?: string;
  app_instance_id?: string;
}

/** A chart with a part missing would mislead, so the bound is far out. */
const MOST_SUMS = 20_000;

export function useUsage(place: Place, query: UsageQuery) {
  return useWhole<UsageSum>(
    ["usage", place.id],
    "/billing/usage",
    { ...query, project_id: place.id },
    { most: MOST_SUMS },
  );
}

interface Asking {
  every?: number;
  wanted?: boolean;
  most?: number;
}

function useWhole<T>(
  key: string[],
  path: string,
  query: Record<string, string | undefined> = {},
  { every = SELDOM, wanted = true, most }: Asking = {},
) {
  return useQuery({
    queryKey: [...key, "whole", query],
    queryFn: ({ signal }) => everyPage<T>(path, query, signal, most),
    placeholderData: keepPreviousData,
    refetchInterval: every,
    enabled: wanted,
  });
}
