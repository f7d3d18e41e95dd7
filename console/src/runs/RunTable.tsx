// A line per run: what it is, how it stands, and, if it does not advance, why and what happens next.
import { Link } from "@tanstack/react-router";
import type { Run } from "../api/types";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime, duration, until } from "../time";
import { useNow } from "../ui/now";
import { ProjectName } from "../ui/Project";
import { useRowKeys } from "../ui/rows";
import { StateWord, toneOf } from "../ui/State";
import { type Column, Table } from "../ui/Table";
import { TraceLink } from "../ui/TraceLink";

/** Where all of them are about one thing, it need not be said again. */
export function RunTable({ runs, ofOne = false }: { runs: Run[]; ofOne?: boolean }) {
  const now = useNow(1000);
  const place = usePlace();
  useRowKeys("a.row-link");
  const columns: Column<Run>[] = [
    { head: "State", cell: (run) => <State run={run} />, title: true },
    { head: "Run", cell: (run) => <Name run={run} ofOne={ofOne} />, title: true },
    ...(place.isPlatform && !ofOne ? [PROJECT] : []),
    { head: "Reason", cell: (run) => reason(run, now), className: "why" },
    { head: "Duration", cell: (run) => duration(lasted(run, now)), className: "number nowrap" },
    {
      head: "Started",
      cell: (run) => <time title={dayAndTime(run.created_at)}>{ago(run.created_at, now)}</time>,
      className: "nowrap",
    },
    { head: "Correlation id", cell: (run) => <TraceLink id={run.correlation_id} />, className: "id clip" },
  ];
  return <Table label="Runs" columns={columns} rows={runs} id={(run) => run.id} edge={(run) => toneOf(run.status)} />;
}

const PROJECT: Column<Run> = { head: "Project", cell: (run) => <ProjectName id={run.project_id} /> };

function State({ run }: { run: Run }) {
  return (
    <>
      <StateWord state={run.status} />
      {run.requested && <span className="asked">{run.requested} requested</span>}
    </>
  );
}

function Name({ run, ofOne }: { run: Run; ofOne: boolean }) {
  const place = usePlace();
  return (
    <>
      <Link className="row-link" to="/$place/runs/$run" params={{ place: place.id, run: run.id }}>
        <strong>{run.kind}</strong> <span className="id">{run.id.slice(-12)}</span>
      </Link>
      {run.subject && !ofOne && (
        <span className="subject" title={run.subject}>
          {shortly(run.subject)}
        </span>
      )}
    </>
  );
}

/** `app instance 1f64e759ba72`: the end of an id tells it from its neighbours, and the line stays one. */
function shortly(subject: string): string {
  const [, kind, id] = /^(\w+):[0-9a-f-]{23}-([0-9a-f]{12})$/.exec(subject) ?? [];
  return kind && id ? `${kind.replaceAll("_", " ")} ${id}` : subject;
}

function lasted(run: Run, now: number): number {
  return (run.finished_at ? Date.parse(run.finished_at) : now) - Date.parse(run.started_at ?? run.created_at);
}

function reason(run: Run, now: number) {
  const cause = run.stuck_cause;
  if (!cause) return run.error ? <span className="tone-bad">{errorText(run.error)}</span> : null;
  return (
    <span>
      {cause.code.replaceAll("_", " ")}
      {cause.next_at && <span className="quiet"> · continues {until(cause.next_at, now)}</span>}
    </span>
  );
}

/** What stopped a run, in one line: the code and the sentence, where there are such. */
export function errorText(error: unknown): string {
  if (typeof error !== "object" || error === null) return String(error);
  const { code, message } = error as { code?: unknown; message?: unknown };
  const parts = [code, message].filter((part) => typeof part === "string");
  return parts.length > 0 ? parts.join(": ") : JSON.stringify(error);
}
