// One run: how it stands and why, its steps on one time axis, what each was given and gave, and what may be asked of it.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { runOptions } from "../api/queries";
import type { RunDetail } from "../api/types";
import { useKeys } from "../shell/KeyMap";
import { usePlace } from "../shell/Shell";
import { dayAndTime, duration } from "../time";
import { Copy, curl } from "../ui/Copy";
import { Crumbs } from "../ui/Crumbs";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/Feedback";
import { useNow } from "../ui/now";
import { StateWord } from "../ui/State";
import { TraceLink } from "../ui/TraceLink";
import { Legend } from "../waterfall/Legend";
import { horizon, stepId, waterfall } from "../waterfall/layout";
import { Waterfall } from "../waterfall/Waterfall";
import { Actions } from "./Actions";
import { Cause } from "./Cause";
import { type Following, useFollow } from "./follow";
import { HowFar } from "./HowFar";
import { Json } from "./Json";
import { StepPanel } from "./StepPanel";

export function RunPage() {
  const place = usePlace();
  const { run: id } = useParams({ from: "/$place/runs/$run" });
  const run = useQuery(runOptions(place, id));
  return (
    <>
      {run.error && <Problem error={run.error} again={() => void run.refetch()} />}
      {run.data ? <Shown run={run.data} /> : !run.error && <Loading what="the run" />}
    </>
  );
}

function Shown({ run }: { run: RunDetail }) {
  const place = usePlace();
  const live = !run.finished_at;
  const following = useFollow(place, run.id, !live);
  const now = useNow(1000, live);
  const { step: chosen } = useSearch({ from: "/$place/runs/$run" });
  const navigate = useNavigate({ from: "/$place/runs/$run" });
  const [folded, setFolded] = useState<boolean | null>(null);
  // Far enough that the present is inside until the next look.
  const until = live ? horizon(run, now + 1000) : 0;
  // Folding what has nothing to fold changes nothing.
  const drawn = useMemo(() => waterfall(run, until, folded ?? true), [run, until, folded]);
  const { foldable } = drawn.scale;
  const fold = folded ?? foldable;
  const choose = useCallback(
    (step: string | undefined) => void navigate({ search: { step }, replace: true }),
    [navigate],
  );
  const close = () => choose(undefined);
  const walk = (by: number) => {
    const at = drawn.rows.findIndex((row) => row.id === chosen);
    choose(drawn.rows[Math.min(drawn.rows.length - 1, Math.max(0, at + by))]?.id);
  };
  useKeys({
    j: () => walk(1),
    k: () => walk(-1),
    f: () => setFolded(!fold),
    y: () => void navigator.clipboard.writeText(run.correlation_id),
    Escape: close,
  });
  const step = run.steps.find((one) => stepId(one) === chosen);
  return (
    <>
      <Crumbs above={[{ name: "Runs", link: { to: "/$place/runs", params: { place: place.id } } }]} />
      <div className="head">
        <h1>{run.kind}</h1>
        <StateWord state={run.status} />
        {run.requested && <span className="asked">{run.requested} requested</span>}
        <span className="spring" />
        <Actions run={run} />
      </div>
      <RunFacts run={run} following={following} now={now} />
      <Cause run={run} now={now} />
      <section className="stage" aria-label="Steps">
        <div className="stage-head">
          <h2>Steps</h2>
          <Legend drawn={drawn} />
          <span className="spring" />
          {foldable && (
            <button type="button" className="plain small" aria-pressed={fold} onClick={() => setFolded(!fold)}>
              {fold ? "Unfold quiet time" : "Fold quiet time"}
            </button>
          )}
          <span className="offers">
            <Copy text={`gpuaas workflows watch ${run.id}`} label="Copy as CLI" />
            <Copy text={curl("GET", `${place.path}/workflows/${run.id}`)} label="Copy as curl" />
          </span>
        </div>
        <Waterfall drawn={drawn} live={live} chosen={chosen} onChoose={choose} />
        <HowFar run={run} />
      </section>
      {step && <StepPanel step={step} now={now} onClose={close} />}
      <section className="io">
        <Json title="Input" value={run.input} />
        <Json
          title="Output"
          value={run.output}
          none={run.finished_at ? "None." : "Nothing yet: a run gives its output when it succeeds."}
        />
      </section>
    </>
  );
}

const FOLLOWING: Record<Following, string> = {
  live: "live",
  connecting: "connecting",
  lost: "reconnecting",
  refused: "not followed",
  ended: "finished",
};

function RunFacts({ run, following, now }: { run: RunDetail; following: Following; now: number }) {
  const began = Date.parse(run.started_at ?? run.created_at);
  const ended = run.finished_at ? Date.parse(run.finished_at) : now;
  const copied = (label: string, text: string) => (
    <Copy text={text} label={label}>
      <code>{text}</code>
    </Copy>
  );
  const updates = (
    <span className={following === "live" ? "live" : "quiet"} role="status">
      {following === "live" && <span className="pulse" aria-hidden="true" />}
      {FOLLOWING[following]}
    </span>
  );
  return (
    <Facts
      facts={[
        [
          "Correlation id",
          <span key="id">
            {copied("Copy the correlation id", run.correlation_id)} <TraceLink id={run.correlation_id}>trace</TraceLink>
          </span>,
        ],
        ["Run id", copied("Copy the run id", run.id)],
        ["About", run.subject && <Subject key="subject" subject={run.subject} />],
        ["Started", dayAndTime(run.created_at)],
        [run.finished_at ? "Duration" : "So far", duration(ended - began)],
        ["Updates", updates],
        ["Retry of", run.retry_of && <OtherRun id={run.retry_of} />],
        ["Part of", run.parent_id && <OtherRun id={run.parent_id} />],
      ]}
    />
  );
}

/** An instance has a page of its own. */
function Subject({ subject }: { subject: string }) {
  const place = usePlace();
  const instance = /^app_instance:(.+)$/.exec(subject)?.[1];
  if (!instance || place.isPlatform) return subject;
  return (
    <Link to="/$place/instances/$instance" params={{ place: place.id, instance }}>
      {subject}
    </Link>
  );
}

function OtherRun({ id }: { id: string }) {
  const place = usePlace();
  return (
    <Link to="/$place/runs/$run" params={{ place: place.id, run: id }} className="id">
      {id.slice(-12)}
    </Link>
  );
}
