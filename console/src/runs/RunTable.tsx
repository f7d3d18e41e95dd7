// A line per run: what it is, how it stands, and, if it does not advance, why and what happens next.
import { Link } from "@tanstack/react-router";
import type { Run } from "../api/types";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime, duration, until } from "../time";
import { useNow } from "../ui/now";
import { useRowKeys } from "../ui/rows";
import { StateWord, toneOf } from "../ui/State";

export function RunTable({ runs }: { runs: Run[] }) {
  const now = useNow(1000);
  useRowKeys("a.row-link");
  return (
    <div className="scroll">
      <table className="list runs">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Run</th>
            <th scope="col">Why it stands still</th>
            <th scope="col" className="number">
              Took
            </th>
            <th scope="col">Began</th>
            <th scope="col">Correlation id</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <RunLine key={run.id} run={run} now={now} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RunLine({ run, now }: { run: Run; now: number }) {
  const place = usePlace();
  const began = Date.parse(run.started_at ?? run.created_at);
  const ended = run.finished_at ? Date.parse(run.finished_at) : now;
  return (
    <tr className={`edge-${toneOf(run.status)}`}>
      <td>
        <StateWord state={run.status} />
        {run.requested && <span className="asked">{run.requested} asked</span>}
      </td>
      <td>
        <Link className="row-link" to="/$place/runs/$run" params={{ place: place.id, run: run.id }}>
          <strong>{run.kind}</strong> <span className="id">{run.id.slice(-12)}</span>
        </Link>
        {run.subject && <span className="subject">{run.subject}</span>}
      </td>
      <td className="why">
        <Why run={run} now={now} />
      </td>
      <td className="number">{duration(ended - began)}</td>
      <td title={dayAndTime(run.created_at)}>{ago(run.created_at, now)}</td>
      <td className="id clip">{run.correlation_id}</td>
    </tr>
  );
}

function Why({ run, now }: { run: Run; now: number }) {
  const cause = run.stuck_cause;
  if (!cause) return run.error ? <span className="tone-bad">{errorText(run.error)}</span> : null;
  return (
    <>
      {cause.code.replaceAll("_", " ")}
      {cause.next_at && <span className="quiet"> · goes on {until(cause.next_at, now)}</span>}
    </>
  );
}

/** What stopped a run, in one line: the code and the sentence, where there are such. */
export function errorText(error: unknown): string {
  if (typeof error !== "object" || error === null) return String(error);
  const { code, message } = error as { code?: unknown; message?: unknown };
  const parts = [code, message].filter((part) => typeof part === "string");
  return parts.length > 0 ? parts.join(": ") : JSON.stringify(error);
}
