// How far nodes are with what the run waits for, where it is counted in bytes.
import type { RunDetail } from "../api/types";
import { stepId } from "../waterfall/layout";

export function HowFar({ run }: { run: RunDetail }) {
  return run.steps.map((step) => {
    const { phase, bytes_done: done, bytes_total: total } = step.progress ?? {};
    if (done === undefined || !total || done >= total) return null;
    const words = `${phase} ${mib(done)} of ${mib(total)} MiB`;
    return (
      <p key={stepId(step)} className="quiet">
        {stepId(step)}: <progress value={done} max={total} aria-label={words} /> {words}
      </p>
    );
  });
}

const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1);
