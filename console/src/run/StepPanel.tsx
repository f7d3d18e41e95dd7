// One step in full: what it was given, what it gave, what went wrong, and every try.
import type { Attempt, Step } from "../api/types";
import { errorText } from "../runs/RunTable";
import { clock, duration } from "../time";
import { StateWord } from "../ui/State";
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
        <Json title="Input" value={step.input} none="A step that is only planned has no input yet." />
        <Json title="Output" value={step.output} />
        {step.error ? <Json title="Error" value={step.error} /> : null}
      </div>
    </section>
  );
}

function Attempts({ attempts }: { attempts: Attempt[] }) {
  return (
    <div className="scroll">
      <table className="list attempts">
        <thead>
          <tr>
            <th scope="col">Try</th>
            <th scope="col">Outcome</th>
            <th scope="col">At</th>
            <th scope="col" className="number">
              Took
            </th>
            <th scope="col">What it said</th>
            <th scope="col">Worker</th>
          </tr>
        </thead>
        <tbody>
          {attempts.map((attempt) => (
            <tr key={`${attempt.undo} ${attempt.attempt} ${attempt.started_at}`}>
              <td className="number">
                {attempt.undo ? "undo " : ""}
                {attempt.attempt}
              </td>
              <td>{attempt.outcome.replaceAll("_", " ")}</td>
              <td>{clock(attempt.started_at)}</td>
              <td className="number">{duration(Date.parse(attempt.finished_at) - Date.parse(attempt.started_at))}</td>
              <td className="id">{attempt.error ? errorText(attempt.error) : ""}</td>
              <td className="id clip">{attempt.worker}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
