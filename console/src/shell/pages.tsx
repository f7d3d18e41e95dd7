// What the rail offers: every page with its key, its sign, and what one must be allowed to see it.
import type { Permission } from "../api/types";
import { may, type Place } from "../place";

/** Line drawings in a square of sixteen. */
const SIGNS = {
  instances: "M2.5 5 8 2l5.5 3v6L8 14l-5.5-3zM2.5 5 8 8l5.5-3M8 8v6",
  runs: "M2 4h5M5 8h6M9 12h5",
  schedules: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zM8 4.8V8l2.2 1.6",
  catalog: "M2.5 2.5h4.2v4.2H2.5zM9.3 2.5h4.2v4.2H9.3zM2.5 9.3h4.2v4.2H2.5zM9.3 9.3h4.2v4.2H9.3z",
  artifacts: "M8 1.8 13 4v4c0 3-2.1 5.2-5 6.2C5.1 13.2 3 11 3 8V4zM5.8 8l1.6 1.6 2.9-3",
  nodes: "M2.5 2.8h11v4h-11zM2.5 9.2h11v4h-11zM5 4.8h.1M5 11.2h.1M8 4.8h3M8 11.2h3",
  allocations: "M7.5 2.5v6h6a6 6 0 1 1-6-6zM10.2 2.4a6 6 0 0 1 3.4 3.4h-3.4z",
  members:
    "M6 7.5a2.4 2.4 0 1 0 0-4.8 2.4 2.4 0 0 0 0 4.8zM1.8 13.2c.3-2.4 2-3.8 4.2-3.8s3.9 1.4 4.2 3.8M10.6 3a2.3 2.3 0 0 1 0 4.3M12 9.8c1.3.6 2.1 1.8 2.2 3.4",
  "service-accounts": "M10.3 2.2a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM7.8 8.2l-5.6 5.6M4.3 11.7 6 13.4",
  trace: "M3 3.2h2.6M3 8h5.2M3 12.8h10M7.4 3.2h.1M10 8h3",
  events: "M8.8 1.8 3.5 9h4l-.5 5.2L12.5 7h-4z",
  usage: "M2.5 13.5h11M4.5 11V8M8 11V3.5M11.5 11V6",
  webhooks: "M5.2 7.2a2.6 2.6 0 1 1 3.6-2.4L7 9M10 9.6a2.6 2.6 0 1 1-1.5 4.3M10.6 11.6H5.8a2.6 2.6 0 1 1-2.3-3.7",
  audit: "M3 2h7l3 3v9H3zM5.5 6.5h3M5.5 9h5M5.5 11.5h5",
};

export interface PageEntry {
  path: keyof typeof SIGNS;
  name: string;
  /** Pressed after `g`. */
  key: string;
  needs: Permission;
  where: "platform" | "project" | "both";
}

export interface Group {
  name: string;
  pages: PageEntry[];
}

const GROUPS: Group[] = [
  {
    name: "Operate",
    pages: [
      { path: "runs", name: "Runs", key: "r", needs: "workflows.read", where: "both" },
      { path: "instances", name: "Instances", key: "i", needs: "apps.instance.read", where: "project" },
      { path: "trace", name: "Trace", key: "t", needs: "workflows.read", where: "both" },
      { path: "events", name: "Events", key: "e", needs: "events.read", where: "project" },
      { path: "schedules", name: "Schedules", key: "s", needs: "workflows.read", where: "platform" },
    ],
  },
  {
    name: "Apps",
    pages: [
      { path: "catalog", name: "Catalog", key: "c", needs: "apps.catalog.read", where: "both" },
      { path: "artifacts", name: "Artifacts", key: "f", needs: "apps.artifact.read", where: "project" },
    ],
  },
  {
    name: "Capacity",
    pages: [
      { path: "nodes", name: "Nodes", key: "n", needs: "nodes.manage", where: "platform" },
      { path: "allocations", name: "Allocations", key: "l", needs: "allocations.read", where: "both" },
      { path: "usage", name: "Usage", key: "u", needs: "billing.usage.read", where: "project" },
    ],
  },
  {
    name: "Access",
    pages: [
      { path: "members", name: "Members", key: "m", needs: "iam.member.manage", where: "project" },
      {
        path: "service-accounts",
        name: "Service accounts",
        key: "k",
        needs: "iam.service_account.read",
        where: "project",
      },
      { path: "webhooks", name: "Webhooks", key: "w", needs: "events.read", where: "project" },
      { path: "audit", name: "Audit", key: "a", needs: "audit.read", where: "both" },
    ],
  },
];

/** The groups that somebody may see here, without empty ones. */
export function groupsIn(place: Place): Group[] {
  const here = place.isPlatform ? "platform" : "project";
  const seen = (page: PageEntry) => may(place, page.needs) && (page.where === "both" || page.where === here);
  const groups = GROUPS.map((group) => ({ ...group, pages: group.pages.filter(seen) }));
  return groups.filter((group) => group.pages.length > 0);
}

/** The page that an address names, though somebody may not see it. */
export function pageAt(section: string | undefined): PageEntry | undefined {
  return GROUPS.flatMap((group) => group.pages).find((page) => page.path === section);
}

export function Sign({ of }: { of: PageEntry["path"] }) {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path d={SIGNS[of]} />
    </svg>
  );
}
