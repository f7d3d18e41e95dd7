// Everything that one request set off, on one time axis: the request itself, runs and their steps, tasks of nodes, events
// and what the audit log says of it. An id grants nothing: only what the reader may see elsewhere is told here.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useEffect, useState } from "react";
import { ApiError } from "../api/client";
import { useTrace } from "../api/queries";
import type { TraceEntry, TraceKind } from "../api/types";
import { useKeys } from "../shell/KeyMap";
import { dayAndTime, duration } from "../time";
import { Copy, curl } from "../ui/Copy";
import { Facts } from "../ui/Facts";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { useNow } from "../ui/now";
import { Tabs } from "../ui/Tabs";
import { Timeline } from "./Timeline";
import { kindsOf, timeline } from "./timeline";

export const KIND_NAMES: Record<TraceKind, string> = {
  request: "Requests",
  workflow: "Runs",
  step: "Steps",
  node_task: "Node tasks",
  event: "Events",
  usage: "Usage",
  audit: "Audit",
};

export function TracePage() {
  const { correlation_id: id } = useSearch({ from: "/$place/trace" });
  return (
    <>
      <div className="head">
        <h1>Trace</h1>
      </div>
      <p className="lead">
        Everything that one request set off, by its correlation id: on one time axis, as it happens.
      </p>
      <Asked id={id} />
      {id ? <Told key={id} id={id} /> : <NoId />}
    </>
  );
}

function Asked({ id }: { id: string | undefined }) {
  const navigate = useNavigate({ from: "/$place/trace" });
  const [text, setText] = useState(id ?? "");
  useEffect(() => setText(id ?? ""), [id]);
  const show = (event: FormEvent) => {
    event.preventDefault();
    void navigate({ search: { correlation_id: text.trim() || undefined } });
  };
  return (
    <form className="asked-for" onSubmit={show}>
      <label className="filter">
        <span>Correlation id</span>
        <input value={text} required onChange={(event) => setText(event.target.value)} />
      </label>
      <button type="submit">Show</button>
    </form>
  );
}

function NoId() {
  return (
    <Empty title="Which correlation id?">
      It stands on every run and every audit entry, every answer of the API carries it as <code>X-Correlation-ID</code>,
      and every refusal tells it.
    </Empty>
  );
}

function Told({ id }: { id: string }) {
  const trace = useTrace(id);
  const unknown = trace.error instanceof ApiError && trace.error.status === 404 && !trace.data;
  if (unknown) {
    return (
      <Empty title="Nothing you may read carries this id">
        Look for a letter that is missing, or ask somebody of the project it belongs to. The first entries of a request
        appear when it is done.
      </Empty>
    );
  }
  return (
    <Listed list={trace} what="the trace" empty={<Empty title="Nothing was set off under this id" />}>
      {(entries) => <Shown id={id} entries={entries} />}
    </Listed>
  );
}

function Shown({ id, entries }: { id: string; entries: TraceEntry[] }) {
  const { kind, entry: chosen } = useSearch({ from: "/$place/trace" });
  const navigate = useNavigate({ from: "/$place/trace" });
  const [folded, setFolded] = useState<boolean | null>(null);
  const now = useNow(500, timeline(entries, Date.now(), false).live);
  const foldable = timeline(entries, now, true).scale.foldable;
  const fold = folded ?? foldable;
  const drawn = timeline(entries, now, fold);
  const marks = kind ? drawn.marks.filter((mark) => mark.entry.kind === kind) : drawn.marks;
  const choose = (entry: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, entry }), replace: true });
  const close = () => choose(undefined);
  const walk = (by: number) => {
    const at = marks.findIndex((mark) => mark.id === chosen);
    choose(marks[Math.min(marks.length - 1, Math.max(0, at + by))]?.id);
  };
  useKeys({
    j: () => walk(1),
    k: () => walk(-1),
    f: () => setFolded(!fold),
    y: () => void navigator.clipboard.writeText(id),
    Escape: close,
  });
  return (
    <>
      <Facts
        facts={[
          ["Began", dayAndTime(new Date(drawn.scale.from).toISOString())],
          [drawn.live ? "So far" : "Took", duration(drawn.scale.to - drawn.scale.from)],
          ["Updates", drawn.live ? <Going key="live" /> : "finished"],
        ]}
      />
      <Tabs
        label="Which entries"
        tabs={[
          { name: `All ${entries.length}`, search: { correlation_id: id, entry: chosen } },
          ...kindsOf(entries).map(([name, count]) => ({
            name: `${KIND_NAMES[name]} ${count}`,
            search: { correlation_id: id, kind: name, entry: chosen },
          })),
        ]}
      />
      <section className="stage" aria-label="Timeline">
        <div className="stage-head">
          <h2>Timeline</h2>
          <span className="spring" />
          {foldable && (
            <button type="button" className="plain small" aria-pressed={fold} onClick={() => setFolded(!fold)}>
              {fold ? "Unfold quiet time" : "Fold quiet time"}
            </button>
          )}
          <Copy text={`gpuaas trace ${id}`} label="Copy as CLI" />
          <Copy text={curl("GET", `/trace/${encodeURIComponent(id)}`)} label="Copy as curl" />
        </div>
        <Timeline scale={drawn.scale} marks={marks} chosen={chosen} onChoose={choose} />
      </section>
    </>
  );
}

function Going() {
  return (
    <span className="live" role="status">
      <span className="pulse" aria-hidden="true" /> live
    </span>
  );
}
