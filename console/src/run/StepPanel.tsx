// One step in full: what it was given, what it gave, what went wrong, and every try.
import type { Attempt, Step } from "../api/types";
import { errorText } from "../runs/RunTable";
import { clock, duration } from "../time";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";
import { stepId } from "../waterfall/layout";
import { Json } from "./Json";

export function StepPanel({ step, now, onClose }: { step: Step; now: number; onClose: () => void }) {
  const began = step.started_at ? Date.parse(step.started_at) : null;
  const ended = step.finished_at ? Date.parse(step.finished_at) : now;
  return (
    <section className="step-panel" aria-label={`Step ${stepId(step)}`}>
      <header>
        <h2>{stepId(step)}</h2>
        <StateWord state={step.state} />
        <span className="quiet">
          {step.kind}
          {step.undoable ? ", can be undone" : ""}
          {began !== null && `, ${duration(ended - began)}`}
        </span>
        <span className="spring" />
        <button type="button" className="plain" onClick={onClose}>
          Close
        </button>
      </header>
      {step.attempts.length > 0 && <Attempts attempts={step.attempts} />}
      <div className="io">
        <Json title="Input" value={step.input} none="A planned step has no input yet." />
        <Json title="Output" value={step.output} />
        {step.error ? <Json title="Error" value={step.error} /> : null}
      </div>
    </section>
  );
}

const COLUMNS: Column<Attempt>[] = [
  { head: "Try", cell: (attempt) => (attempt.undo ? `undo ${attempt.attempt}` : attempt.attempt), title: true },
  { head: "Outcome", cell: (attempt) => attempt.outcome.replaceAll("_", " ") },
  { head: "At", cell: (attempt) => clock(attempt.started_at) },
  {
    head: "Duration",
    cell: (attempt) => duration(Date.parse(attempt.finished_at) - Date.parse(attempt.started_at)),
    className: "number",
  },
  { head: "Error", cell: (attempt) => (attempt.error ? errorText(attempt.error) : null), className: "why" },
  { head: "Worker", cell: (attempt) => attempt.worker, className: "id clip" },
];

function Attempts({ attempts }: { attempts: Attempt[] }) {
  const id = (attempt: Attempt) => `${attempt.undo} ${attempt.attempt} ${attempt.started_at}`;
  return <Table label="Tries" columns={COLUMNS} rows={attempts} id={id} />;
}
