// What may be asked of a run now. The server says what its state allows, the grants what this person may; the rest is not
// shown. Before anything happens, the page says what will.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { post } from "../api/client";
import { runOptions } from "../api/queries";
import type { Operated, RunDetail, Step } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { Copy, curl } from "../ui/Copy";
import { Dialog } from "../ui/Dialog";
import { stepId, undoPreview } from "../waterfall/layout";

type Verb = "retry" | "resume" | "pause" | "cancel";
const VERBS: Verb[] = ["resume", "retry", "pause", "cancel"];
const COMMANDS: Record<Verb, string> = {
  retry: "retry",
  resume: "workflows resume",
  pause: "workflows pause",
  cancel: "workflows cancel",
};

export function Actions({ run }: { run: RunDetail }) {
  const place = usePlace();
  const [verb, choose] = useState<Verb | null>(null);
  if (!may(place, "workflows.operate")) return null;
  const allowed = VERBS.filter((one) => run.allowed_actions.includes(one));
  return (
    <fieldset className="actions" aria-label="Actions">
      {allowed.map((one) => (
        <button key={one} type="button" className={one === "cancel" ? "danger" : ""} onClick={() => choose(one)}>
          {one[0]?.toUpperCase() + one.slice(1)}
        </button>
      ))}
      {verb && <ActionDialog key={verb} run={run} verb={verb} onClose={() => choose(null)} />}
    </fieldset>
  );
}

function ActionDialog({ run, verb, onClose }: { run: RunDetail; verb: Verb; onClose: () => void }) {
  const place = usePlace();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [key] = useState(() => crypto.randomUUID());
  const [reason, setReason] = useState("");
  const path = `${place.path}/workflows/${run.id}/${verb}`;
  const body = reason.trim() ? { reason: reason.trim() } : {};
  const ask = useMutation({
    mutationFn: () => post<Operated>(path, body, key),
    onSuccess: (answer) => {
      onClose();
      void client.invalidateQueries({ queryKey: ["runs"] });
      void client.invalidateQueries({ queryKey: runOptions(place, run.id).queryKey });
      if (answer.id !== run.id) void navigate({ to: "/$place/runs/$run", params: { place: place.id, run: answer.id } });
    },
  });
  const name = verb[0]?.toUpperCase() + verb.slice(1);
  return (
    <Dialog
      title={`${name} this run?`}
      confirm={verb === "cancel" ? "Cancel and undo" : name}
      danger={verb === "cancel"}
      busy={ask.isPending}
      error={ask.error}
      curl={
        <>
          <Copy text={`gpuaas ${COMMANDS[verb]} ${run.id}`} label="Copy as CLI" />
          <Copy text={curl("POST", path, body)} label="Copy as curl" />
        </>
      }
      onConfirm={() => ask.mutate()}
      onClose={onClose}
    >
      <Preview run={run} verb={verb} />
      <label className="field">
        Reason <span className="quiet">for whoever reads the log</span>
        <input value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
      </label>
    </Dialog>
  );
}

function Preview({ run, verb }: { run: RunDetail; verb: Verb }) {
  if (verb === "pause" && run.status === "paused")
    return <p>It is no longer tried again by itself. Nothing is undone; resuming tries it again.</p>;
  if (verb === "pause")
    return <p>It stops at its next safe point. Nothing is undone, and resuming continues from there.</p>;
  if (verb === "resume") return <p>It continues where it stopped. Steps that succeeded are not done again.</p>;
  if (verb === "retry" && run.finished_at) {
    return <p>This run has ended and stays as it is. A new run starts with the same input and refers to this one.</p>;
  }
  if (verb === "retry") {
    const failed = run.steps.find((step) => step.state === "failed" || step.state === "ambiguous");
    return (
      <p>
        It retries from {failed ? <code>{stepId(failed)}</code> : "the step that failed"}. Steps that succeeded are
        kept.
      </p>
    );
  }
  const { undone, stays } = undoPreview(run);
  return (
    <div className="preview">
      <p>
        {undone.length > 0
          ? "It stops and undoes these steps, in this order:"
          : "It stops. Nothing it did needs to be undone."}
      </p>
      <StepList steps={undone} label="Will be undone" className="undone" />
      {stays.length > 0 && <p>These succeeded and have no undo:</p>}
      <StepList steps={stays} label="Stays" className="stays" />
    </div>
  );
}

function StepList({ steps, label, className }: { steps: Step[]; label: string; className: string }) {
  if (steps.length === 0) return null;
  return (
    <ol aria-label={label} className={className}>
      {steps.map((step) => (
        <li key={stepId(step)}>
          <code>{stepId(step)}</code>
          {step.state === "ambiguous" && <span className="quiet"> outcome unknown; it is looked at first</span>}
          {step.state === "running" && <span className="quiet"> under way; it is stopped first</span>}
        </li>
      ))}
    </ol>
  );
}
