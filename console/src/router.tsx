// The table of contents: every address of the console and the page behind it. Filters live in the address, so that a
// look at something can be kept, shared and gone back to.
import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { AccountsPage } from "./accounts/AccountsPage";
import { type AllocationFilter, type ArtifactFilter, type InstanceFilter, places, type RunFilter } from "./api/queries";
import { DELIVERY_STATUSES, type DeliveryStatus, TRACE_KINDS, type TraceKind } from "./api/types";
import { ArtifactPage } from "./artifacts/ArtifactPage";
import { ArtifactsPage } from "./artifacts/ArtifactsPage";
import { AuditPage } from "./audit/AuditPage";
import { AppPage } from "./catalog/AppPage";
import { CatalogPage } from "./catalog/CatalogPage";
import { SubmissionPage } from "./catalog/SubmissionPage";
import { VersionPage } from "./catalog/VersionPage";
import { InstancePage } from "./instances/InstancePage";
import { InstancesPage } from "./instances/InstancesPage";
import { MembersPage } from "./members/MembersPage";
import { AllocationsPage } from "./nodes/AllocationsPage";
import { NodesPage } from "./nodes/NodesPage";
import { RunPage } from "./run/RunPage";
import { RunsPage } from "./runs/RunsPage";
import { SchedulesPage } from "./schedules/SchedulesPage";
import { Nowhere, Shell } from "./shell/Shell";
import { Problem } from "./ui/Feedback";

type EventFilter = "type" | "subject" | "correlation_id" | "since";

export interface UsageView {
  view?: "ledger";
  window?: string;
  since?: string;
  /** By what the sums are told apart. */
  by?: string;
  /** What is drawn: cost, or one unit. */
  of?: string;
}

const root = createRootRouteWithContext<{ client: QueryClient }>()({ component: Outlet });

const home = createRoute({
  getParentRoute: () => root,
  path: "/",
  loader: async ({ context }) => {
    const known = await context.client.ensureQueryData(places);
    const first = known.places[0];
    if (first) throw redirect({ to: "/$place/runs", params: { place: first.id }, replace: true });
  },
  component: Nowhere,
});

const place = createRoute({
  getParentRoute: () => root,
  path: "/$place",
  loader: ({ context }) => context.client.ensureQueryData(places),
  component: Shell,
});

const inPlace = () => place;

const placeHome = createRoute({
  getParentRoute: inPlace,
  path: "/",
  beforeLoad: ({ params }) => {
    throw redirect({ to: "/$place/runs", params, replace: true });
  },
});

const runs = createRoute({
  getParentRoute: inPlace,
  path: "/runs",
  validateSearch: (search: Record<string, unknown>): RunFilter => ({
    view: search.view === "stuck" || search.view === "failed" ? search.view : undefined,
    ...words(search, ["kind", "status", "cause", "subject", "correlation_id", "since", "project_id"]),
  }),
  component: RunsPage,
});

const run = createRoute({
  getParentRoute: inPlace,
  path: "/runs/$run",
  validateSearch: (search: Record<string, unknown>): { step?: string } => words(search, ["step"]),
  component: RunPage,
});

const instances = createRoute({
  getParentRoute: inPlace,
  path: "/instances",
  validateSearch: (search: Record<string, unknown>): InstanceFilter => ({
    ...words(search, ["status", "app", "version", "allocation"]),
    ...ended(search),
  }),
  component: InstancesPage,
});

const INSTANCE_VIEWS = ["logs", "events", "usage", "values"] as const;
export type InstanceView = (typeof INSTANCE_VIEWS)[number];

const instance = createRoute({
  getParentRoute: inPlace,
  path: "/instances/$instance",
  validateSearch: (search: Record<string, unknown>): { view?: InstanceView; member?: string } => ({
    view: INSTANCE_VIEWS.find((view) => view === search.view),
    ...words(search, ["member"]),
  }),
  component: InstancePage,
});

const trace = createRoute({
  getParentRoute: inPlace,
  path: "/trace",
  validateSearch: (search: Record<string, unknown>): { correlation_id?: string; kind?: TraceKind; entry?: string } => ({
    kind: TRACE_KINDS.find((kind) => kind === search.kind),
    ...words(search, ["correlation_id", "entry"]),
  }),
  component: lazyRouteComponent(() => import("./trace/TracePage"), "TracePage"),
});

const events = createRoute({
  getParentRoute: inPlace,
  path: "/events",
  validateSearch: (search: Record<string, unknown>): Partial<Record<EventFilter, string>> =>
    words(search, ["type", "subject", "correlation_id", "since"]),
  component: lazyRouteComponent(() => import("./events/EventsPage"), "EventsPage"),
});

const usage = createRoute({
  getParentRoute: inPlace,
  path: "/usage",
  validateSearch: (search: Record<string, unknown>): UsageView => ({
    view: search.view === "ledger" ? "ledger" : undefined,
    ...words(search, ["window", "since", "by", "of"]),
  }),
  component: lazyRouteComponent(() => import("./usage/UsagePage"), "UsagePage"),
});

const webhooks = createRoute({
  getParentRoute: inPlace,
  path: "/webhooks",
  component: lazyRouteComponent(() => import("./webhooks/WebhooksPage"), "WebhooksPage"),
});

const webhook = createRoute({
  getParentRoute: inPlace,
  path: "/webhooks/$webhook",
  validateSearch: (search: Record<string, unknown>): { status?: DeliveryStatus } => ({
    status: DELIVERY_STATUSES.find((status) => status === search.status),
  }),
  component: lazyRouteComponent(() => import("./webhooks/WebhookPage"), "WebhookPage"),
});

const catalog = createRoute({
  getParentRoute: inPlace,
  path: "/catalog",
  validateSearch: ({ view }: Record<string, unknown>): { view?: "all" | "reviews" } =>
    view === "all" || view === "reviews" ? { view } : {},
  component: CatalogPage,
});

const app = createRoute({ getParentRoute: inPlace, path: "/catalog/$slug", component: AppPage });
const version = createRoute({ getParentRoute: inPlace, path: "/catalog/$slug/$version", component: VersionPage });

const submission = createRoute({
  getParentRoute: inPlace,
  path: "/submissions/$submission",
  component: SubmissionPage,
});

/** Loaded when somebody deploys: forms from schemas weigh more than the rest of the console. */
const deploy = createRoute({
  getParentRoute: inPlace,
  path: "/catalog/$slug/$version/deploy",
  component: lazyRouteComponent(() => import("./deploy/DeployPage"), "DeployPage"),
});

const artifacts = createRoute({
  getParentRoute: inPlace,
  path: "/artifacts",
  validateSearch: (search: Record<string, unknown>): ArtifactFilter & { view?: "keys" } => ({
    ...(search.view === "keys" ? { view: "keys" } : {}),
    ...words(search, ["app_slug", "app_version", "trust_state", "lifecycle_state", "digest"]),
  }),
  component: ArtifactsPage,
});

const artifact = createRoute({ getParentRoute: inPlace, path: "/artifacts/$artifact", component: ArtifactPage });
const nodes = createRoute({ getParentRoute: inPlace, path: "/nodes", component: NodesPage });

const allocations = createRoute({
  getParentRoute: inPlace,
  path: "/allocations",
  validateSearch: (search: Record<string, unknown>): AllocationFilter => ({
    ...words(search, ["status"]),
    ...ended(search),
  }),
  component: AllocationsPage,
});

const schedules = createRoute({ getParentRoute: inPlace, path: "/schedules", component: SchedulesPage });

const audit = createRoute({
  getParentRoute: inPlace,
  path: "/audit",
  validateSearch: (search: Record<string, unknown>): Partial<Record<string, string>> =>
    words(search, ["action", "target", "result", "correlation_id", "actor_id", "since"]),
  component: AuditPage,
});

const accounts = createRoute({ getParentRoute: inPlace, path: "/service-accounts", component: AccountsPage });
const members = createRoute({ getParentRoute: inPlace, path: "/members", component: MembersPage });

const operated = [runs, run, instances, instance, schedules, trace, events];
const ofApps = [catalog, app, version, submission, deploy, artifacts, artifact];
const rest = [nodes, allocations, audit, accounts, members, usage, webhooks, webhook];

const tree = root.addChildren([home, place.addChildren([placeHome, ...operated, ...ofApps, ...rest])]);

/** Only words somebody wrote; numbers and nonsense in an address are no filter. */
function words<K extends string>(search: Record<string, unknown>, names: K[]): Partial<Record<K, string>> {
  const found: Partial<Record<K, string>> = {};
  for (const name of names) {
    const value = search[name];
    if (typeof value === "string" && value !== "") found[name] = value;
    else if (typeof value === "number") found[name] = String(value);
  }
  return found;
}

function ended(search: Record<string, unknown>): { ended?: true } {
  return search.ended === true ? { ended: true } : {};
}

export function makeRouter(client: QueryClient) {
  return createRouter({
    routeTree: tree,
    basepath: "/console",
    context: { client },
    defaultErrorComponent: ({ error, reset }) => <Problem error={error} again={reset} />,
    defaultNotFoundComponent: Nowhere,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
