// One run: how it stands and why, its steps on one time axis, what each was given and gave, and what may be asked of it.
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { runOptions } from "../api/queries";
import type { RunDetail } from "../api/types";
import { useKeys } from "../shell/KeyMap";
import { usePlace } from "../shell/Shell";
import { dayAndTime, duration } from "../time";
import { Copy, curl } from "../ui/Copy";
import { Loading, Problem } from "../ui/Feedback";
import { useNow } from "../ui/now";
import { StateWord } from "../ui/State";
import { stepId, waterfall } from "../waterfall/layout";
import { Waterfall } from "../waterfall/Waterfall";
import { Actions } from "./Actions";
import { Cause } from "./Cause";
import { type Following, useFollow } from "./follow";
import { Json } from "./Json";
import { StepPanel } from "./StepPanel";

export function RunPage() {
  const place = usePlace();
  const { run: id } = useParams({ from: "/$place/runs/$run" });
  const run = useQuery(runOptions(place, id));
  const following = useFollow(place, id, run.data?.finished_at != null);
  if (run.error && !run.data) return <Problem error={run.error} again={() => void run.refetch()} />;
  if (!run.data) return <Loading what="the run" />;
  return <Shown run={run.data} following={following} />;
}

function Shown({ run, following }: { run: RunDetail; following: Following }) {
  const place = usePlace();
  const live = !run.finished_at;
  const now = useNow(250, live);
  const { step: chosen } = useSearch({ from: "/$place/runs/$run" });
  const navigate = useNavigate({ from: "/$place/runs/$run" });
  const [folded, setFolded] = useState<boolean | null>(null);
  const foldable = waterfall(run, now, true).scale.foldable;
  const fold = folded ?? foldable;
  const drawn = waterfall(run, now, fold);
  const choose = (step: string | undefined) => void navigate({ search: { step }, replace: true });
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
      <div className="head">
        <Link to="/$place/runs" params={{ place: place.id }} className="back" aria-label="Back to the runs">
          ←
        </Link>
        <h1>{run.kind}</h1>
        <StateWord state={run.status} />
        {run.requested && <span className="asked">{run.requested} asked</span>}
        <span className="spring" />
        <Actions run={run} />
      </div>
      <Facts run={run} following={following} now={now} />
      <Cause run={run} now={now} />
      <section className="stage" aria-label="Steps">
        <div className="stage-head">
          <h2>Steps</h2>
          <Legend />
          <span className="spring" />
          {foldable && (
            <button type="button" className="plain" aria-pressed={fold} onClick={() => setFolded(!fold)}>
              {fold ? "Unfold quiet time" : "Fold quiet time"}
            </button>
          )}
          <Copy text={curl("GET", `${place.path}/workflows/${run.id}`)} label="Copy as curl" />
        </div>
        <Waterfall drawn={drawn} now={now} live={live} chosen={chosen} onChoose={choose} />
      </section>
      {step && <StepPanel step={step} now={now} onClose={close} />}
      <section className="io">
        <Json title="Input" value={run.input} />
        <Json title="Output" value={run.output} none="Nothing yet: a run gives its output when it succeeds." />
      </section>
    </>
  );
}

function Facts({ run, following, now }: { run: RunDetail; following: Following; now: number }) {
  const place = usePlace();
  const began = Date.parse(run.started_at ?? run.created_at);
  const ended = run.finished_at ? Date.parse(run.finished_at) : now;
  return (
    <dl className="facts">
      <div>
        <dt>Correlation id</dt>
        <dd>
          <Copy text={run.correlation_id} label="Copy the correlation id">
            <code>{run.correlation_id}</code>
          </Copy>
        </dd>
      </div>
      <div>
        <dt>Run</dt>
        <dd>
          <Copy text={run.id} label="Copy the run's id">
            <code>{run.id}</code>
          </Copy>
        </dd>
      </div>
      <div>
        <dt>Began</dt>
        <dd>{dayAndTime(run.created_at)}</dd>
      </div>
      <div>
        <dt>{run.finished_at ? "Took" : "Since"}</dt>
        <dd className="number">{duration(ended - began)}</dd>
      </div>
      <div>
        <dt>Follows</dt>
        <dd>
          <span className={following === "live" ? "live" : "quiet"} role="status">
            {following === "live" && <span className="pulse" aria-hidden="true" />}
            {{ live: "live", connecting: "connecting", lost: "reconnecting", ended: "ended" }[following]}
          </span>
        </dd>
      </div>
      {run.retry_of && (
        <div>
          <dt>Tries again</dt>
          <dd>
            <Link to="/$place/runs/$run" params={{ place: place.id, run: run.retry_of }}>
              {run.retry_of.slice(-12)}
            </Link>
          </dd>
        </div>
      )}
      {run.parent_id && (
        <div>
          <dt>Part of</dt>
          <dd>
            <Link to="/$place/runs/$run" params={{ place: place.id, run: run.parent_id }}>
              {run.parent_id.slice(-12)}
            </Link>
          </dd>
        </div>
      )}
    </dl>
  );
}

function Legend() {
  const kinds = [
    ["try good", "done"],
    ["try bad", "failed try"],
    ["wait", "waits"],
    ["backoff", "rests before the next try"],
    ["undo", "undone"],
    ["planned", "ahead"],
  ];
  return (
    <ul className="legend wide-only" aria-label="What the bars mean">
      {kinds.map(([look, word]) => (
        <li key={word}>
          <span className={`key ${look}`} aria-hidden="true" />
          {word}
        </li>
      ))}
    </ul>
  );
}
