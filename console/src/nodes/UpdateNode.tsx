// Has a node's agent become that of a release. The run tells how it went: a program that does not report is given up.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { releases } from "../api/queries";
import type { Node, WorkflowHandle } from "../api/types";
import { usePlace } from "../shell/Shell";
import { AskDialog } from "../ui/Ask";
import { Empty } from "../ui/Feedback";

export function UpdateNode({ node, path }: { node: Node; path: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Update
      </button>
      {open && <Question node={node} path={path} onClose={() => setOpen(false)} />}
    </>
  );
}

function Question({ node, path, onClose }: { node: Node; path: string; onClose: () => void }) {
  const place = usePlace();
  const navigate = useNavigate();
  const known = useQuery(releases).data;
  const [chosen, choose] = useState("");
  const version = chosen || known?.[0]?.version || "";
  return (
    <AskDialog<{ workflow: WorkflowHandle }>
      title={`Update the agent of ${node.name}?`}
      confirm="Update"
      path={`${path}/update`}
      body={{ version }}
      reasoned
      cli={`gpuaas nodes update ${node.name} ${version}`}
      renews={["nodes"]}
      onDone={({ workflow }) =>
        void navigate({ to: "/$place/runs/$run", params: { place: place.id, run: workflow.id } })
      }
      onClose={onClose}
    >
      <p>
        It runs {node.agent_version ?? "an unknown version"} now. It fetches the release, tries it, and goes on as it is
        where the new program does not report. Workloads run on.
      </p>
      {known?.length === 0 && <Empty title="No release yet">Publish one with ./dev release.</Empty>}
      <label className="field">
        Release
        <select required value={version} onChange={(event) => choose(event.target.value)}>
          {(known ?? []).map((one) => (
            <option key={one.version}>{one.version}</option>
          ))}
        </select>
      </label>
    </AskDialog>
  );
}
