// The picture of a trace: a row per entry, what lasted as a bar and what happened at once as a point. A row opens to tell
// what it is about and leads on.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { places } from "../api/queries";
import type { TraceEntry, TraceKind } from "../api/types";
import { PLATFORM } from "../place";
import { usePlace } from "../shell/Shell";
import { clock, duration } from "../time";
import { Facts } from "../ui/Facts";
import type { Scale } from "../waterfall/scale";
import { entryId, type Mark } from "./timeline";

const KINDS: Record<TraceKind, string> = {
  request: "request",
  workflow: "run",
  step: "step",
  node_task: "task",
  event: "event",
  usage: "usage",
  audit: "audit",
};

interface Props {
  scale: Scale;
  marks: Mark[];
  chosen: string | undefined;
  onChoose: (entry: string | undefined) => void;
}

const percent = (part: number) => `${(part * 100).toFixed(3)}%`;

export function Timeline({ scale, marks, chosen, onChoose }: Props) {
  return (
    <div className="waterfall trace">
      <div className="axis" aria-hidden="true">
        <div className="plot">
          {scale.ticks.map((tick) => (
            <span
              key={tick.moment}
              className={tick.at > 0.94 ? "tick last" : "tick"}
              style={{ left: percent(tick.at) }}
            >
              {tick.moment === scale.from ? "0" : duration(tick.moment - scale.from)}
            </span>
          ))}
        </div>
      </div>
      <div className="ground" aria-hidden="true">
        <div className="plot">
          {scale.ticks.map((tick) => (
            <span key={tick.moment} className="grid" style={{ left: percent(tick.at) }} />
          ))}
          {scale.folds.map((fold) => (
            <span
              key={fold.from}
              className="fold"
              style={{ left: percent(fold.left), width: percent(fold.right - fold.left) }}
            >
              <em>{duration(fold.to - fold.from)} folded</em>
            </span>
          ))}
        </div>
      </div>
      <ol>
        {marks.map((mark) => (
          <li key={mark.id} className={mark.inside ? "inside" : undefined}>
            <button
              type="button"
              aria-expanded={mark.id === chosen}
              className={mark.id === chosen ? "chosen" : ""}
              onClick={() => onChoose(mark.id === chosen ? undefined : mark.id)}
            >
              <Label mark={mark} />
              <span className="plot" aria-hidden="true">
                <Shape mark={mark} scale={scale} />
              </span>
            </button>
            {mark.id === chosen && <Detail entry={mark.entry} />}
          </li>
        ))}
      </ol>
    </div>
  );
}

function Label({ mark }: { mark: Mark }) {
  const { entry } = mark;
  return (
    <span className="label">
      <span className={`kind kind-${entry.kind}`}>{KINDS[entry.kind]}</span>
      <span className="name">{entry.name}</span>
      <span className="spring" />
      {entry.status && (
        <span className={mark.tone === "bad" ? "tries" : "took"}>{entry.status.replaceAll("_", " ")}</span>
      )}
    </span>
  );
}

function Shape({ mark, scale }: { mark: Mark; scale: Scale }) {
  const left = scale.at(mark.from);
  const look = mark.tone === "undo" ? "undo" : `try ${mark.tone}`;
  if (mark.to === mark.from) return <span className={`moment ${mark.tone}`} style={{ left: percent(left) }} />;
  const width = `max(3px, ${percent(scale.at(mark.to) - left)})`;
  return (
    <span
      className={`bar ${mark.entry.kind === "workflow" ? "whole " : ""}${look}`}
      style={{ left: percent(left), width }}
    />
  );
}

function Detail({ entry }: { entry: TraceEntry }) {
  const took = entry.finished_at ? duration(Date.parse(entry.finished_at) - Date.parse(entry.at)) : null;
  return (
    <section className="entry" aria-label={`Entry ${entryId(entry)}`}>
      <Facts
        facts={[
          ["At", clock(entry.at)],
          ["Took", took],
          ["Status", entry.status?.replaceAll("_", " ")],
          ["Error code", entry.code && <code key="code">{entry.code}</code>],
          ["About", entry.subject && <About key="about" entry={entry} subject={entry.subject} />],
          ["Run", entry.workflow_id && <TheRun key="run" entry={entry} run={entry.workflow_id} />],
          [
            "Asked by",
            entry.actor_id && (
              <span key="who" className="id">
                {entry.actor_id.slice(-12)}
              </span>
            ),
          ],
        ]}
      />
    </section>
  );
}

/** The place that an entry belongs to, as far as the reader knows it; else the present one. */
function usePlaceOf(entry: TraceEntry): string {
  const here = usePlace();
  const known = useQuery(places).data?.places ?? [];
  if (!here.isPlatform && entry.project_id === here.id) return here.id;
  return known.find((place) => place.id === (entry.project_id ?? PLATFORM))?.id ?? here.id;
}

function TheRun({ entry, run }: { entry: TraceEntry; run: string }) {
  const place = usePlaceOf(entry);
  const step = entry.kind === "step" ? entry.name : undefined;
  return (
    <Link to="/$place/runs/$run" params={{ place, run }} search={{ step }}>
      Open the run <span className="id">{run.slice(-12)}</span>
    </Link>
  );
}

function About({ entry, subject }: { entry: TraceEntry; subject: string }): ReactNode {
  const place = usePlaceOf(entry);
  const instance = /^app_instance:(.+)$/.exec(subject)?.[1];
  if (!instance || place === PLATFORM) return <span className="id">{subject}</span>;
  return (
    <Link to="/$place/instances/$instance" params={{ place, instance }} className="id">
      {subject}
    </Link>
  );
}
