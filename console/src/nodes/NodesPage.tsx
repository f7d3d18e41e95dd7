// The machines: whether they are heard of, what they have, and who holds which part of it.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { places, useNodes } from "../api/queries";
import type { Allocation, Inventory, Node, NodeWithToken, Workload } from "../api/types";
import { useHeldAllocations } from "../api/whole";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime } from "../time";
import { Ask } from "../ui/Ask";
import { Facts } from "../ui/Facts";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { NotAll } from "../ui/NotAll";
import { useNow } from "../ui/now";
import { StateWord } from "../ui/State";
import { AddNode, Enrolment } from "./AddNode";
import { type Packed, packing, SILENT_MS } from "./packing";
import { UpdateNode } from "./UpdateNode";

export function NodesPage() {
  const place = usePlace();
  const nodes = useNodes(place);
  const held = useHeldAllocations(place).data;
  const [made, setMade] = useState<NodeWithToken | null>(null);
  return (
    <>
      <div className="head">
        <h1>Nodes</h1>
        <span className="spring" />
        <AddNode onMade={setMade} />
      </div>
      <p className="lead">Machines that run workloads, what each has, and which project holds which part.</p>
      <NotAll of={held} what="allocations" />
      {made && <Enrolment made={made} onDone={() => setMade(null)} />}
      <Listed
        list={nodes}
        what="nodes"
        empty={<Empty title="No node yet">Add one, and start the agent on the machine with the token you get.</Empty>}
      >
        {(items) => (
          <div className="nodes">
            {items.map((node) => (
              <NodeCard
                key={node.id}
                node={node}
                allocations={(held?.items ?? []).filter((allocation) => allocation.node_id === node.id)}
              />
            ))}
          </div>
        )}
      </Listed>
    </>
  );
}

function NodeCard({ node, allocations }: { node: Node; allocations: Allocation[] }) {
  const now = useNow(1000);
  const inventory = node.inventory as Inventory | null;
  const workloads = (node.workloads ?? []) as Workload[];
  const unwell = workloads.filter((one) => one.state === "running" && one.health === "unhealthy").length;
  return (
    <article className="panel" aria-label={node.name}>
      <header>
        <h2>{node.name}</h2>
        <StateWord state={node.status} />
        <span className="spring" />
        <Buttons node={node} />
      </header>
      <Facts
        facts={[
          ["Heartbeat", <Heartbeat key="beat" node={node} now={now} />],
          ["Driver", node.driver === "simulated" ? "simulated: nothing really runs" : node.driver],
          ["Address", node.address && <code>{node.address}</code>],
          ["Agent", node.agent_version],
          ["Enrolled", node.enrolled_at && dayAndTime(node.enrolled_at)],
          ["Containers", `${workloads.length}${unwell > 0 ? `, ${unwell} unhealthy` : ""}`],
          ["Accelerator", accelerators(inventory)],
        ]}
      />
      {inventory && packing(inventory, allocations).map((packed) => <PackedBar key={packed.what} packed={packed} />)}
    </article>
  );
}

function accelerators(inventory: Inventory | null): string | null {
  const kinds = new Set((inventory?.gpus ?? []).map((gpu) => `${gpu.sku}, ${gpu.memory_gib} GiB`));
  return kinds.size > 0 ? [...kinds].join("; ") : null;
}

function Heartbeat({ node, now }: { node: Node; now: number }) {
  if (!node.last_seen_at) return "never";
  const silent = now - Date.parse(node.last_seen_at) > SILENT_MS;
  return (
    <time className={silent ? "tone-bad" : undefined} title={dayAndTime(node.last_seen_at)}>
      {ago(node.last_seen_at, now)}
    </time>
  );
}

function PackedBar({ packed }: { packed: Packed }) {
  const names = useQuery(places).data?.places ?? [];
  const nameOf = (id: string) => names.find((place) => place.id === id)?.name ?? id.slice(-8);
  const { what, unit, total, shares, free } = packed;
  if (total === 0) return null;
  const told = shares.map(({ allocation, amount }) => `${nameOf(allocation.project_id)} ${amount}`);
  return (
    <div className="packed">
      <span className="what">{what}</span>
      <span className="bars" role="img" aria-label={`${what}: ${[...told, `${free} free`].join(", ")} of ${total}`}>
        {shares.map(({ allocation, amount }) => (
          <span
            key={allocation.id}
            className="share"
            style={{ flexGrow: amount }}
            title={nameOf(allocation.project_id)}
          >
            {nameOf(allocation.project_id)}
          </span>
        ))}
        {free > 0 && <span className="free" style={{ flexGrow: free }} />}
      </span>
      <span className="sum">
        {free} of {total} {unit} free
      </span>
    </div>
  );
}

function Buttons({ node }: { node: Node }) {
  const place = usePlace();
  const path = `${place.path}/nodes/${node.id}`;
  if (!may(place, "nodes.manage")) return null;
  return (
    <fieldset className="actions" aria-label={`Actions on ${node.name}`}>
      {node.allowed_actions.includes("drain") && (
        <Ask
          label="Drain"
          title={`Drain ${node.name}?`}
          confirm="Drain"
          path={`${path}/drain`}
          reasoned
          renews={["nodes"]}
        >
          <p>Nothing new is placed on it. What runs there goes on until it is decommissioned or moved.</p>
        </Ask>
      )}
      {node.allowed_actions.includes("activate") && (
        <Ask
          label="Activate"
          title={`Activate ${node.name}?`}
          confirm="Activate"
          path={`${path}/activate`}
          reasoned
          renews={["nodes"]}
        >
          <p>Workloads are placed on it again.</p>
        </Ask>
      )}
      {node.allowed_actions.includes("update") && <UpdateNode node={node} path={path} />}
    </fieldset>
  );
}
