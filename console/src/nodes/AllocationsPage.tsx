// Parts of nodes, and the projects that hold them. Instances are placed inside them.
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useAllocations } from "../api/queries";
import { ALLOCATION_STATUSES, type Allocation } from "../api/types";
import { may } from "../place";
import { counted } from "../runtime";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime } from "../time";
import { Ask } from "../ui/Ask";
import { Empty } from "../ui/Feedback";
import { FilterBar } from "../ui/FilterBar";
import { Also, Choice } from "../ui/Filters";
import { Listed } from "../ui/Listed";
import { useNow } from "../ui/now";
import { ProjectName } from "../ui/Project";
import { StateWord, toneOf } from "../ui/State";
import { type Column, Table } from "../ui/Table";
import { NewAllocation } from "./NewAllocation";

export function AllocationsPage() {
  const place = usePlace();
  const filter = useSearch({ from: "/$place/allocations" });
  const navigate = useNavigate({ from: "/$place/allocations" });
  const allocations = useAllocations(place, filter);
  const now = useNow(1000);
  const columns: Column<Allocation>[] = [
    { head: "Status", cell: (one) => <StateWord state={one.status} />, title: true },
    { head: "Allocation", cell: (one) => <Name allocation={one} />, title: true },
    ...(place.isPlatform ? [project] : []),
    { head: "GPUs", cell: gpus, className: "nowrap" },
    { head: "CPU", cell: (one) => counted(one.cpu_cores, "core"), className: "nowrap" },
    { head: "Memory", cell: (one) => `${one.memory_gib} GiB`, className: "nowrap" },
    {
      head: "Since",
      cell: (one) => <time title={dayAndTime(one.created_at)}>{ago(one.created_at, now)}</time>,
      className: "nowrap",
    },
    { head: "Actions", cell: (one) => place.isPlatform && <Release allocation={one} />, className: "buttons" },
  ];
  return (
    <>
      <div className="head">
        <h1>Allocations</h1>
        <span className="spring" />
        {place.isPlatform && may(place, "allocations.manage") && <NewAllocation />}
      </div>
      <p className="lead">
        {place.isPlatform
          ? "Parts of nodes that projects hold. Instances are placed inside them."
          : "The parts of nodes that this project holds. Its instances are placed inside them."}
      </p>
      <FilterBar inUse={filter.status ? 1 : 0} cleared={{ ended: filter.ended }}>
        <Choice
          label="Status"
          value={filter.status}
          options={ALLOCATION_STATUSES}
          onChange={(status) => void navigate({ search: (before) => ({ ...before, status }) })}
        />
        {!filter.status && (
          <Also
            label="Also released"
            on={filter.ended === true}
            onChange={(on) => void navigate({ search: { ended: on || undefined } })}
          />
        )}
      </FilterBar>
      <Listed
        list={allocations}
        what="allocations"
        empty={<Empty title="No allocation">A platform admin gives a project its part of a node.</Empty>}
      >
        {(items) => (
          <Table
            label="Allocations"
            columns={columns}
            rows={items}
            id={(one) => one.id}
            edge={(one) => toneOf(one.status)}
          />
        )}
      </Listed>
    </>
  );
}

const gpus = (one: Allocation) =>
  one.gpu_count > 0 ? `${one.gpu_count} ${one.accelerator ? `· ${one.sku}` : ""}` : "none";

const project: Column<Allocation> = { head: "Project", cell: (one) => <ProjectName id={one.project_id} /> };

function Name({ allocation }: { allocation: Allocation }) {
  const place = usePlace();
  const short = allocation.id.slice(-12);
  return (
    <>
      {place.isPlatform ? (
        <strong>{short}</strong>
      ) : (
        <Link
          className="row-link"
          to="/$place/instances"
          params={{ place: place.id }}
          search={{ allocation: allocation.id }}
        >
          <strong>{short}</strong>
        </Link>
      )}
      <span className="subject">{allocation.capacity_shape === "baremetal" ? "a whole node" : "a part of a node"}</span>
    </>
  );
}

function Release({ allocation }: { allocation: Allocation }) {
  const place = usePlace();
  if (allocation.status !== "active" || !may(place, "allocations.manage")) return null;
  return (
    <Ask
      label="Release"
      title="Take this allocation back?"
      confirm="Release"
      danger
      path={`${place.path}/allocations/${allocation.id}/release`}
      reasoned
      renews={["allocations", "nodes"]}
    >
      <p>Its instances are decommissioned first. Then its part of the node is free for another project.</p>
    </Ask>
  );
}
