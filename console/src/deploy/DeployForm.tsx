// The form: what every app asks, then what this version asks. A refusal stands at the field it is about, and a version that
// fits nowhere shows why, allocation by allocation.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useMemo, useState } from "react";
import { ApiError, post } from "../api/client";
import type { Explanation, InstancePlan, InstanceWithRun, Manifest, Version } from "../api/types";
import { useActiveAllocations, useArtifactsOf } from "../api/whole";
import { usePlace } from "../shell/Shell";
import { Copy, curl } from "../ui/Copy";
import { Problem } from "../ui/Feedback";
import { NotAll } from "../ui/NotAll";
import { Basics } from "./Basics";
import { Credentials } from "./Credentials";
import { Matrix, matrixOf } from "./Matrix";
import { PlanPanel } from "./Plan";
import { offering, ownPlacement } from "./placement";
import { SchemaForm } from "./SchemaForm";
import { below, command, emptyWish, type Refusal, refusals, request, type Wish } from "./wish";

export function DeployForm({ version, explained }: { version: Version; explained: Explanation }) {
  const place = usePlace();
  const [wish, setWish] = useState(() => emptyWish(explained));
  const [wrong, setWrong] = useState({ config: false, placement: false });
  const valid = !wrong.config && !wrong.placement;
  const path = `${place.path}/app-instances`;
  const body = request(version.app_slug, version.version, wish);
  const { deploy, plan, told } = useAsking(path, body);
  const error = deploy.error ?? plan.error;
  const details = error instanceof ApiError ? error.details : {};
  const asCommand = command(version.app_slug, version.version, wish);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!deploy.isPending) deploy.mutate();
  };
  return (
    <form className="deploy" onSubmit={submit}>
      <Fields
        version={version}
        explained={explained}
        wish={wish}
        refused={refusals(details)}
        onChange={(change, wrong) => {
          setWish((before) => ({ ...before, ...change }));
          if (wrong) setWrong((before) => ({ ...before, ...wrong }));
        }}
      />
      {error ? <Problem error={error} /> : null}
      <Refused refused={refusals(details).filter((one) => !hasField(one, version))} />
      {matrixOf(details) && <Matrix rows={matrixOf(details) ?? []} />}
      {/* A plan of another wish would mislead. */}
      {plan.data && plan.variables === told && !error && <PlanPanel plan={plan.data} counted={counted(explained)} />}
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

/** Asks for the plan, or for the instance itself; the page then goes on to watch the run. */
function useAsking(path: string, body: unknown) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const place = usePlace();
  const told = JSON.stringify(body);
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
  return { deploy, plan, told };
}

interface Filling {
  version: Version;
  explained: Explanation;
  wish: Wish;
  refused: Refusal[];
  onChange: (change: Partial<Wish>, wrong?: { config: boolean } | { placement: boolean }) => void;
}

function Fields({ version, explained, wish, refused, onChange }: Filling) {
  const place = usePlace();
  const manifest = manifestOf(version);
  const { config_schema: settings, placement_schema, ui_hints: hints } = manifest;
  const allocations = useActiveAllocations(place).data;
  const artifacts = useArtifactsOf(place, version.app_slug, version.version).data;
  const own = ownPlacement(placement_schema);
  const choices = useMemo(
    () => own && offering(own, allocations?.items ?? [], hints?.placement),
    [own, allocations, hints],
  );
  return (
    <>
      <section className="panel" aria-label="The instance">
        <h2>The instance</h2>
        <Basics
          wish={wish}
          explained={explained}
          manifest={manifest}
          allocations={own ? null : (allocations?.items ?? [])}
          artifacts={artifacts?.items ?? []}
          set={onChange}
        />
        <NotAll of={allocations} what="allocations" />
        <NotAll of={artifacts} what="artifacts" />
      </section>
      {choices && (
        <SchemaForm
          title="Placement"
          schema={choices}
          hints={hints?.placement}
          value={wish.placement}
          refused={below("/placement_intent", refused)}
          onChange={(placement, fine) => onChange({ placement }, { placement: !fine })}
        />
      )}
      <Credentials
        needs={explained.credentials}
        value={wish.credentials}
        onChange={(credentials) => onChange({ credentials })}
      />
      {settings && (
        <SchemaForm
          title="Settings"
          schema={settings}
          hints={hints?.config}
          value={wish.config}
          refused={below("/config", refused)}
          onChange={(config, fine) => onChange({ config }, { config: !fine })}
        />
      )}
    </>
  );
}

const manifestOf = (version: Version) => (version.manifest as unknown as Manifest).version;

/** The unit of what the app itself counts. */
const counted = ({ price }: Explanation) => (price.counted_by === "app" ? (price.unit ?? undefined) : undefined);

/** Whether a refusal is shown at the field that it is about. */
function hasField({ pointer }: Refusal, version: Version): boolean {
  const { config_schema, placement_schema } = manifestOf(version);
  if (pointer.startsWith("/config/")) return !!config_schema;
  return pointer.startsWith("/placement_intent/") && ownPlacement(placement_schema) !== null;
}

function Refused({ refused }: { refused: Refusal[] }) {
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
