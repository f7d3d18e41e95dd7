// The project's app instances: what serves, where, and what keeps the others from it.
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type InstanceFilter, useInstances } from "../api/queries";
import { INSTANCE_STATUSES, type Instance } from "../api/types";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime } from "../time";
import { Empty } from "../ui/Feedback";
import { FilterBar } from "../ui/FilterBar";
import { Also, Choice, Written } from "../ui/Filters";
import { Listed } from "../ui/Listed";
import { useNow } from "../ui/now";
import { useRowKeys } from "../ui/rows";
import { InstanceState, toneOf } from "../ui/State";
import { type Column, Table } from "../ui/Table";
import { sizes } from "./values";

export function InstancesPage() {
  const place = usePlace();
  const filter = useSearch({ from: "/$place/instances" });
  const navigate = useNavigate({ from: "/$place/instances" });
  const instances = useInstances(place, filter);
  const { ended, ...narrowed } = filter;
  const inUse = Object.keys(narrowed).length;
  const set = (name: keyof InstanceFilter) => (value: string | true | undefined) =>
    void navigate({ search: (before) => ({ ...before, [name]: value }) });
  return (
    <>
      <div className="head">
        <h1>Instances</h1>
      </div>
      <p className="lead">Apps that run on this project's allocations. Open one for its access, values and history.</p>
      <FilterBar inUse={inUse} cleared={{ ended }}>
        <Choice label="Status" value={filter.status} options={INSTANCE_STATUSES} onChange={set("status")} />
        <Written label="App" value={filter.app} onChange={set("app")} />
        <Written label="Version" value={filter.version} onChange={set("version")} />
        <Written label="Allocation" value={filter.allocation} onChange={set("allocation")} placeholder="any, by id" />
        {!filter.status && (
          <Also label="Also ended" on={ended === true} onChange={(on) => set("ended")(on || undefined)} />
        )}
      </FilterBar>
      <Listed list={instances} what="instances" empty={<NoInstances filtered={inUse > 0} ended={ended === true} />}>
        {(items) => <Instances items={items} />}
      </Listed>
    </>
  );
}

function NoInstances({ filtered, ended }: { filtered: boolean; ended: boolean }) {
  const place = usePlace();
  if (filtered) return <Empty title="No instance matches these filters">Take one away to see more.</Empty>;
  return (
    <Empty title={ended ? "Nothing ever ran here" : "Nothing runs here"}>
      {!ended && "Those that have ended are there with “Also ended”. "}Choose an app in the{" "}
      <Link to="/$place/catalog" params={{ place: place.id }}>
        catalog
      </Link>{" "}
      and deploy it.
    </Empty>
  );
}

function Instances({ items }: { items: Instance[] }) {
  const now = useNow(1000);
  useRowKeys("a.row-link");
  const columns: Column<Instance>[] = [
    { head: "Status", cell: (instance) => <InstanceState status={instance.status} />, title: true },
    { head: "Instance", cell: (instance) => <Name instance={instance} />, title: true },
    { head: "Version", cell: version, className: "nowrap" },
    { head: "Reason", cell: (instance) => instance.status_reason?.message, className: "why" },
    { head: "Resources", cell: (instance) => sizes(instance.resources), className: "nowrap" },
    {
      head: "Created",
      cell: (instance) => <time title={dayAndTime(instance.created_at)}>{ago(instance.created_at, now)}</time>,
      className: "nowrap",
    },
  ];
  return <Table label="Instances" columns={columns} rows={items} id={(instance) => instance.id} edge={edge} />;
}

function Name({ instance }: { instance: Instance }) {
  const place = usePlace();
  return (
    <>
      <Link className="row-link" to="/$place/instances/$instance" params={{ place: place.id, instance: instance.id }}>
        <strong>{instance.display_name}</strong> <span className="id">{instance.id.slice(-12)}</span>
      </Link>
      <span className="subject">{instance.app_slug}</span>
    </>
  );
}

function edge({ status, status_reason }: Instance) {
  if (status_reason?.kind === "blocked") return "bad";
  return status === "running" ? undefined : toneOf(status);
}

function version({ version, target_version }: Instance) {
  return target_version && target_version !== version ? `${version} → ${target_version}` : version;
}
