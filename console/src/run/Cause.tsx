// Why a run does not advance, what happens next and when; or what stopped it.
import type { RunDetail, StuckCode } from "../api/types";
import { errorText } from "../runs/RunTable";
import { clock, until } from "../time";

const SENTENCES: Record<StuckCode, string> = {
  lease_lost: "The process that drove this run is gone.",
  backoff: "A try failed; the next one starts by itself.",
  project_limit: "The run waits for its turn: its project, or every process, has as many under way as it may.",
  waiting_signal: "The run waits for a signal from outside.",
  waiting_timer: "The run waits for a time that it chose itself.",
  paused_by_operator: "An operator paused this run.",
  retries_exhausted: "Every try of a step failed.",
  undo_failed: "Something could not be undone.",
  unknown_version: "No process here knows this version of the workflow.",
  waiting_for_run: "The run waits for another run to end.",
  database_pressure: "The database is too busy to take more.",
  crash_loop: "Processes that drive this run die again and again.",
  nondeterministic: "The workflow took another way than its journal says.",
};

const BLOCKED: StuckCode[] = ["retries_exhausted", "undo_failed", "unknown_version", "crash_loop", "nondeterministic"];

export function Cause({ run, now }: { run: RunDetail; now: number }) {
  const cause = run.stuck_cause;
  if (!cause) {
    if (!run.error) return null;
    return (
      <section className="cause blocked" aria-label="What stopped the run">
        <h2>What stopped this run</h2>
        <p className="id">{errorText(run.error)}</p>
      </section>
    );
  }
  const blocked = BLOCKED.includes(cause.code);
  const evidence = Object.entries(cause.detail ?? {}).filter(
    ([, value]) => value !== null && typeof value !== "object",
  );
  return (
    <section className={`cause ${blocked ? "blocked" : "waiting"}`} aria-label="Why the run does not advance">
      <h2>{SENTENCES[cause.code]}</h2>
      <p>{cause.next_action.replaceAll("at next_at", "at the time below")}</p>
      <dl className="evidence">
        <div>
          <dt>cause</dt>
          <dd>{cause.code}</dd>
        </div>
        {cause.next_at && (
          <div>
            <dt>next</dt>
            <dd>
              <strong>{until(cause.next_at, now)}</strong> <span className="quiet">at {clock(cause.next_at)}</span>
            </dd>
          </div>
        )}
        {evidence.map(([name, value]) => (
          <div key={name}>
            <dt>{name.replaceAll("_", " ")}</dt>
            <dd>{String(value)}</dd>
          </div>
        ))}
      </dl>
      {run.error ? <p className="id">{errorText(run.error)}</p> : null}
    </section>
  );
}
