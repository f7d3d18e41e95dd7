// Gives a project a part of a node, or all of it.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { places } from "../api/queries";
import { useEveryNode } from "../api/whole";
import { usePlace } from "../shell/Shell";
import { AskDialog } from "../ui/Ask";
import { NotAll } from "../ui/NotAll";

export function NewAllocation() {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="primary" onClick={() => setOpen(true)}>
        New allocation
      </button>
      {open && <Form onClose={() => setOpen(false)} />}
    </>
  );
}

const AMOUNTS = [
  ["gpu_count", "GPUs"],
  ["cpu_cores", "Cores"],
  ["memory_gib", "Memory, GiB"],
] as const;

function Form({ onClose }: { onClose: () => void }) {
  const place = usePlace();
  const projects = (useQuery(places).data?.places ?? []).filter((one) => !one.isPlatform);
  const every = useEveryNode(place).data;
  const nodes = (every?.items ?? []).filter((node) => node.status === "active");
  const [project, setProject] = useState("");
  const [node, setNode] = useState("");
  const [whole, setWhole] = useState(true);
  const [amounts, setAmounts] = useState<Record<string, string>>({});
  const project_id = project || projects[0]?.id;
  const node_id = node || nodes[0]?.id;
  const sizes = AMOUNTS.map(([name]) => [name, Number(amounts[name] || 0)]);
  const body = whole
    ? { project_id, node_id, capacity_shape: "baremetal" }
    : { project_id, node_id, capacity_shape: "gpu_slice", ...Object.fromEntries(sizes) };
  return (
    <AskDialog
      title="New allocation"
      confirm="Allocate"
      path={`${place.path}/allocations`}
      body={body}
      reasoned
      renews={["allocations", "nodes"]}
      onClose={onClose}
    >
      <Select
        label="Project"
        value={project_id}
        onChange={setProject}
        options={projects.map((one) => [one.id, one.name])}
      />
      <Select label="Node" value={node_id} onChange={setNode} options={nodes.map((one) => [one.id, one.name])} />
      <NotAll of={every} what="nodes" />
      <label className="check">
        <input type="checkbox" checked={whole} onChange={(event) => setWhole(event.target.checked)} />
        The whole node
      </label>
      {!whole && (
        <div className="columns">
          {AMOUNTS.map(([name, label]) => (
            <label key={name} className="field">
              {label}
              <input
                type="number"
                min={0}
                value={amounts[name] ?? ""}
                onChange={(event) => setAmounts({ ...amounts, [name]: event.target.value })}
              />
            </label>
          ))}
        </div>
      )}
    </AskDialog>
  );
}

interface Choosing {
  label: string;
  value: string | undefined;
  onChange: (value: string) => void;
  options: [string, string][];
}

function Select({ label, value, onChange, options }: Choosing) {
  return (
    <label className="field">
      {label}
      <select required value={value ?? ""} onChange={(event) => onChange(event.target.value)}>
        {options.map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
