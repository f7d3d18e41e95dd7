// One instance: how it stands and why, where it is reached, the values the server decided, and what may be asked of it.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { OFTEN, oneOptions } from "../api/queries";
import type { Instance } from "../api/types";
import { Json } from "../run/Json";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Copy, curl } from "../ui/Copy";
import { Crumbs } from "../ui/Crumbs";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/Feedback";
import { InstanceState } from "../ui/State";
import { AccessPanel } from "./Access";
import { InstanceActions } from "./Actions";
import { InstanceRuns } from "./InstanceRuns";
import { ReceiptPanel } from "./Receipt";
import { lastOperation, sizes } from "./values";

export function InstancePage() {
  const place = usePlace();
  const { instance: id } = useParams({ from: "/$place/instances/$instance" });
  const path = `${place.path}/app-instances/${id}`;
  const instance = useQuery(oneOptions<Instance>("instance", path, OFTEN));
  if (instance.error && !instance.data) return <Problem error={instance.error} again={() => void instance.refetch()} />;
  if (!instance.data) return <Loading what="the instance" />;
  const shown = instance.data;
  const serves = ["running", "upgrading", "rolling_back"].includes(shown.status);
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
      {serves && <AccessPanel path={path} />}
      {shown.status === "decommissioned" && <ReceiptPanel path={path} />}
      <InstanceRuns instance={shown} />
      <section className="part" aria-label="Effective values">
        <div className="head">
          <h2>Effective values</h2>
          <span className="spring" />
          <Copy text={curl("GET", path)} label="Copy as curl" />
        </div>
        <Digests instance={shown} />
        <div className="io">
          <Json title="Config" value={shown.config} />
          <Json title="Resources" value={shown.resources} />
          <Json title="Placement" value={shown.placement_intent} />
        </div>
      </section>
    </>
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
