// What may be asked of an instance now: what its state allows, as the server says, and what this person holds. Each
// becomes a run, and the page goes on to watch it.
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { post } from "../api/client";
import type { Instance, InstancePlan, InstanceWithRun } from "../api/types";
import { useOfferedVersions } from "../api/whole";
import { PlanPanel } from "../deploy/Plan";
import { usePlace } from "../shell/Shell";
import { type Act, Acts } from "../ui/Acts";
import { AskDialog } from "../ui/Ask";
import { Loading, Problem } from "../ui/Feedback";
import { NotAll } from "../ui/NotAll";

type Verb = "retry" | "upgrade" | "rollback" | "decommission";

const ACTS: Record<Verb, Act> = {
  retry: {
    name: "Retry",
    needs: "apps.instance.operate",
    tells: "It is deployed again, after whatever the node still has of it is gone.",
  },
  upgrade: {
    name: "Upgrade",
    needs: "apps.instance.upgrade",
    tells:
      "The new version is started beside the old one and takes over once it is healthy. If it does not become so, the old one goes on serving. Where both do not fit, the old one is stopped first and started again on failure; the run says so.",
  },
  rollback: {
    name: "Roll back",
    needs: "apps.instance.rollback",
    tells: "The version before takes over again, by the same way as an upgrade. Its image is still on the node.",
  },
  decommission: {
    name: "Decommission",
    needs: "apps.instance.delete",
    looks: "danger",
    tells:
      "The instance stops for good. Its containers, networks and files are removed from the node, its credentials end, its place becomes free, and a signed receipt is kept. What is under way is undone first.",
  },
};

const COMMANDS: Record<Verb, string> = {
  retry: "retry",
  upgrade: "upgrade",
  rollback: "rollback",
  decommission: "down",
};

export function InstanceActions({ instance, path }: { instance: Instance; path: string }) {
  return (
    <Acts
      acts={ACTS}
      allowed={instance.allowed_actions}
      ask={(verb, onClose) => <Question key={verb} verb={verb} instance={instance} path={path} onClose={onClose} />}
    />
  );
}

interface Asking {
  verb: Verb;
  instance: Instance;
  path: string;
  onClose: () => void;
}

function Question({ verb, instance, path, onClose }: Asking) {
  const place = usePlace();
  const navigate = useNavigate();
  const [target, setTarget] = useState("");
  const act = ACTS[verb];
  return (
    <AskDialog<InstanceWithRun>
      title={`${act.name} ${instance.display_name}?`}
      confirm={act.name}
      danger={act.looks === "danger"}
      path={`${path}/${verb}`}
      body={target ? { target_version: target } : {}}
      reasoned
      cli={`gpuaas ${COMMANDS[verb]} ${instance.id}${target ? ` --version ${target}` : ""}`}
      renews={["instance", "instances", "runs"]}
      onDone={({ workflow }) =>
        void navigate({ to: "/$place/runs/$run", params: { place: place.id, run: workflow.id } })
      }
      onClose={onClose}
    >
      <p>{act.tells}</p>
      {verb === "upgrade" && <Target instance={instance} value={target} onChange={setTarget} />}
      {verb !== "retry" && (verb !== "upgrade" || target) && <Ahead path={path} verb={verb} target={target} />}
    </AskDialog>
  );
}

/** The plan of what is asked about, as the server tells it; a refusal stands here before anything was asked for. */
function Ahead({ path, verb, target }: { path: string; verb: Verb; target: string }) {
  const plan = useQuery({
    queryKey: ["plan", path, verb, target],
    queryFn: () =>
      post<InstancePlan>(
        `${path}/plan`,
        { action: verb, ...(target ? { target_version: target } : {}) },
        crypto.randomUUID(),
      ),
    retry: false,
  });
  if (plan.error) return <Problem error={plan.error} />;
  return plan.data ? <PlanPanel plan={plan.data} /> : <Loading what="the plan" />;
}

interface Choosing {
  instance: Instance;
  value: string;
  onChange: (version: string) => void;
}

/** Versions that the project may deploy, but for the one that serves. */
function Target({ instance, value, onChange }: Choosing) {
  const offered = useOfferedVersions(usePlace(), instance.app_slug).data;
  const others = (offered?.items ?? []).filter((one) => one.version !== instance.version);
  return (
    <label className="field">
      Version <span className="quiet">now {instance.version}</span>
      <select required value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">{others.length > 0 ? "choose one" : "there is no other that this project may deploy"}</option>
        {others.map((one) => (
          <option key={one.id} value={one.version}>
            {one.version} ({one.status})
          </option>
        ))}
      </select>
      <NotAll of={offered} what="versions" />
    </label>
  );
}
