// The form: what every app asks, then what this version asks. A refusal stands at the field it is about, and a version that
// fits nowhere shows why, allocation by allocation.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useMemo, useState } from "react";
import { ApiError, post } from "../api/client";
import type { Explanation, InstancePlan, InstanceWithRun, Manifest, Version } from "../api/types";
import { usePlace } from "../shell/Shell";
import { Copy, curl } from "../ui/Copy";
import { Problem } from "../ui/Feedback";
import { Basics } from "./Basics";
import { Matrix, matrixOf } from "./Matrix";
import { PlanPanel } from "./Plan";
import { SchemaForm } from "./SchemaForm";
import { command, emptyWish, refusals, request } from "./wish";

export function DeployForm({ version, explained }: { version: Version; explained: Explanation }) {
  const place = usePlace();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [wish, setWish] = useState(() => emptyWish(explained));
  const [valid, setValid] = useState(true);
  const manifest = version.manifest as unknown as Manifest;
  const path = `${place.path}/app-instances`;
  const body = request(version.app_slug, version.version, wish);
  const told = JSON.stringify(body);
  const asCommand = command(version.app_slug, version.version, wish, explained.supported[0]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the same wish twice is one instance, another wish another
  const key = useMemo(() => crypto.randomUUID(), [told]);
  const deploy = useMutation({
    mutationFn: () => post<InstanceWithRun>(path, body, key),
    onSuccess: ({ workflow }) => {
      void client.invalidateQueries({ queryKey: ["instances"] });
      void navigate({ to: "/$place/runs/$run", params: { place: place.id, run: workflow.id } });
    },
  });
  const plan = useMutation({
    mutationFn: (_told: string) => post<InstancePlan>(`${path}/plan`, body, crypto.randomUUID()),
    onMutate: () => deploy.reset(),
  });
  const error = deploy.error ?? plan.error;
  const details = error instanceof ApiError ? error.details : {};
  const refused = refusals(details);
  const ofConfig = refused.filter(({ pointer }) => pointer.startsWith("/config/"));
  const schema = manifest.version.config_schema;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!deploy.isPending) deploy.mutate();
  };
  return (
    <form className="deploy" onSubmit={submit}>
      <section className="panel" aria-label="The instance">
        <h2>The instance</h2>
        <Basics wish={wish} explained={explained} manifest={manifest} onChange={setWish} />
      </section>
      {schema && (
        <section className="panel" aria-label="Settings">
          <h2>Settings</h2>
          <SchemaForm
            schema={schema}
            hints={manifest.version.ui_hints?.config as never}
            value={wish.config}
            refused={ofConfig.map(({ pointer, message }) => ({ pointer: pointer.slice("/config".length), message }))}
            onChange={(config, fine) => {
              setWish((before) => ({ ...before, config }));
              setValid(fine);
            }}
          />
        </section>
      )}
      {error ? <Problem error={error} /> : null}
      <Refused refused={refused.filter((one) => !ofConfig.includes(one))} />
      {matrixOf(details) && <Matrix rows={matrixOf(details) ?? []} />}
      {/* A plan of another wish would mislead. */}
      {plan.data && plan.variables === told && !error && <PlanPanel plan={plan.data} />}
      <footer className="actions">
        <button type="button" disabled={plan.isPending || !valid} onClick={() => plan.mutate(told)}>
          {plan.isPending ? "Asking…" : "Show the plan"}
        </button>
        <button type="submit" className="primary" disabled={deploy.isPending || !valid}>
          {deploy.isPending ? "Asking…" : "Deploy"}
        </button>
        {asCommand && <Copy text={asCommand} label="Copy as CLI" />}
        <Copy text={curl("POST", path, body)} label="Copy as curl" />
      </footer>
    </form>
  );
}

function Refused({ refused }: { refused: { pointer: string; message: string }[] }) {
  if (refused.length === 0) return null;
  return (
    <ul className="refused">
      {refused.map(({ pointer, message }) => (
        <li key={`${pointer} ${message}`}>
          <code>{pointer}</code> {message}
        </li>
      ))}
    </ul>
  );
}
