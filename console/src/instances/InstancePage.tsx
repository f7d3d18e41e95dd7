// One instance: how it stands and why, where it is reached, the values the server decided, and what may be asked of it.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { OFTEN, oneOptions } from "../api/queries";
import type { Instance } from "../api/types";
import { may } from "../place";
import type { InstanceView } from "../router";
import { Json } from "../run/Json";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Copy, curl } from "../ui/Copy";
import { Crumbs } from "../ui/Crumbs";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/Feedback";
import { InstanceState } from "../ui/State";
import { Tabs } from "../ui/Tabs";
import { AccessPanel } from "./Access";
import { InstanceActions } from "./Actions";
import { InstanceRuns } from "./InstanceRuns";
import { Logs } from "./Logs";
import { MembersPanel } from "./Members";
import { ReceiptPanel } from "./Receipt";
import { Remedy } from "./Remedy";
import { Told } from "./Told";
import { lastOperation, sizes } from "./values";

export function InstancePage() {
  const place = usePlace();
  const { instance: id } = useParams({ from: "/$place/instances/$instance" });
  const { view } = useSearch({ from: "/$place/instances/$instance" });
  const path = `${place.path}/app-instances/${id}`;
  const instance = useQuery(oneOptions<Instance>("instance", path, OFTEN));
  if (instance.error && !instance.data) return <Problem error={instance.error} again={() => void instance.refetch()} />;
  if (!instance.data) return <Loading what="the instance" />;
  const shown = instance.data;
  const tabs: [string, InstanceView | undefined][] = [
    ["Overview", undefined],
    ["Logs", "logs"],
    ...(may(place, "events.read") ? [["Events", "events"] satisfies [string, InstanceView]] : []),
    ...(may(place, "billing.usage.read") ? [["Usage", "usage"] satisfies [string, InstanceView]] : []),
    ["Values", "values"],
  ];
  return (
    <>
      <Crumbs above={[{ name: "Instances", link: { to: "/$place/instances", params: { place: place.id } } }]} />
      <div className="head">
        <h1>{shown.display_name}</h1>
        <InstanceState status={shown.status} />
        <span className="spring" />
        <InstanceActions instance={shown} path={path} />
      </div>
      <InstanceFacts instance={shown} />
      <Reason instance={shown} />
      <Tabs label="What of it" tabs={tabs.map(([name, one]) => ({ name, search: { view: one } }))} />
      {view === undefined && <Overview instance={shown} path={path} />}
      {view === "logs" && <Logs instance={shown} path={path} />}
      {view === "events" && <Told instance={shown} />}
      {view === "usage" && <InstanceUsage instance={shown} />}
      {view === "values" && <Values instance={shown} path={path} />}
    </>
  );
}

function Overview({ instance, path }: { instance: Instance; path: string }) {
  const serves = ["running", "upgrading", "rolling_back"].includes(instance.status);
  return (
    <>
      {serves && <AccessPanel path={path} />}
      {instance.status === "decommissioned" ? <ReceiptPanel path={path} /> : <MembersPanel path={path} />}
      <InstanceRuns instance={instance} />
    </>
  );
}

/** Drawn by what is loaded with the charts. */
function InstanceUsage({ instance }: { instance: Instance }) {
  return (
    <Suspense fallback={<Loading what="its usage" />}>
      <UsageOfInstance instance={instance.id} />
    </Suspense>
  );
}

const UsageOfInstance = lazy(async () => ({ default: (await import("../usage/InstanceUsage")).InstanceUsage }));

function Values({ instance, path }: { instance: Instance; path: string }) {
  return (
    <section aria-label="Effective values">
      <div className="head">
        <span className="quiet">What the server decided, from what was asked and what the version and policy say.</span>
        <span className="spring" />
        <Copy text={curl("GET", path)} label="Copy as curl" />
      </div>
      <Digests instance={instance} />
      <div className="io">
        <Json title="Config" value={instance.config} />
        <Json title="Resources" value={instance.resources} />
        <Json title="Placement" value={instance.placement_intent} />
      </div>
    </section>
  );
}

function InstanceFacts({ instance }: { instance: Instance }) {
  const place = usePlace();
  const { app_slug, version, target_version } = instance;
  const app = (
    <Link to="/$place/catalog/$slug/$version" params={{ place: place.id, slug: app_slug, version }}>
      {app_slug} {version}
    </Link>
  );
  const id = (
    <Copy text={instance.id} label="Copy the instance id">
      <code>{instance.id}</code>
    </Copy>
  );
  return (
    <Facts
      facts={[
        ["App", app],
        ["Going to", target_version && target_version !== version ? target_version : null],
        ["Resources", sizes(instance.resources)],
        ["Mode", `${instance.operating_mode.replaceAll("_", " ")} · ${instance.control_plane_scope}`],
        ["Boundary", instance.tenant_boundary_mode.replaceAll("_", " ")],
        ["Created", dayAndTime(instance.created_at)],
        ["Running since", instance.activated_at && dayAndTime(instance.activated_at)],
        ["Instance id", id],
      ]}
    />
  );
}

/** Why it is not what it should be, and whether anybody must do something about it. */
function Reason({ instance }: { instance: Instance }) {
  const { status_reason: reason } = instance;
  const last = lastOperation(instance.last_operation);
  const failed =
    last && last.status !== "succeeded" ? `The last ${last.kind} ${last.status.replaceAll("_", " ")}.` : null;
  if (!reason && !failed) return null;
  const blocked = reason?.kind !== "waiting";
  return (
    <section className={blocked ? "cause blocked" : "cause"} aria-label="Why">
      <h2>{reason ? reason.message : failed}</h2>
      {reason && failed && <p>{failed}</p>}
      {reason && (
        <p>
          {blocked ? "Somebody has to act." : "Nobody has to act: it goes on by itself."}{" "}
          <span className="chip">{reason.code.replaceAll("_", " ")}</span>
        </p>
      )}
      {reason && <Remedy reason={reason.code} />}
    </section>
  );
}

function Digests({ instance }: { instance: Instance }) {
  if (instance.artifacts.length === 0) return null;
  return (
    <Facts
      facts={instance.artifacts.map(({ name, digest }) => [
        `Image ${name}`,
        <Copy key={name} text={digest} label="Copy the digest">
          <code>{digest.slice(0, 26)}…</code>
        </Copy>,
      ])}
    />
  );
}
