// The picture of a run: a row per step, bars on one axis, the present as a line, and what lies ahead in outline behind it.
import { memo } from "react";
import { duration } from "../time";
import { StateMark } from "../ui/State";
import { type Bar, type Waterfall as Drawn, lookOf, type Row } from "./layout";

/** The part of the width that steps ahead may take. */
const AHEAD = 0.16;

interface Props {
  drawn: Drawn;
  now: number;
  live: boolean;
  chosen: string | undefined;
  onChoose: (step: string | undefined) => void;
}

const percent = (part: number) => `${(part * 100).toFixed(3)}%`;

export function Waterfall({ drawn, now, live, chosen, onChoose }: Props) {
  const { scale, rows, plannedCount } = drawn;
  const past = plannedCount > 0 ? 1 - AHEAD : 1;
  const place = (moment: number) => scale.at(moment) * past;
  return (
    <div className="waterfall">
      <div className="axis" aria-hidden="true">
        <div className="plot">
          {scale.ticks.map((tick) => (
            <span
              key={tick.moment}
              className={tick.at * past > 0.94 ? "tick last" : "tick"}
              style={{ left: percent(tick.at * past) }}
            >
              {tick.moment === scale.from ? "0" : duration(tick.moment - scale.from)}
            </span>
          ))}
          {plannedCount > 0 && (
            <span className="tick ahead" style={{ left: percent(past) }}>
              planned
            </span>
          )}
        </div>
      </div>
      <div className="ground" aria-hidden="true">
        <div className="plot">
          {scale.ticks.map((tick) => (
            <span key={tick.moment} className="grid" style={{ left: percent(tick.at * past) }} />
          ))}
          {scale.folds.map((fold) => (
            <span
              key={fold.from}
              className="fold"
              style={{ left: percent(fold.left * past), width: percent((fold.right - fold.left) * past) }}
            >
              <em>{duration(fold.to - fold.from)} folded</em>
            </span>
          ))}
          {live && <span className="now" style={{ left: percent(place(now)) }} />}
        </div>
      </div>
      <ol>
        {rows.map((row) => (
          <li key={row.id} className={row.planned === null ? "" : "ahead"}>
            <button
              type="button"
              aria-expanded={row.id === chosen}
              className={row.id === chosen ? "chosen" : ""}
              onClick={() => onChoose(row.id === chosen ? undefined : row.id)}
            >
              <Label row={row} />
              <span className="plot" aria-hidden="true">
                {row.bars.map((bar) => (
                  <BarShape
                    key={`${bar.kind} ${bar.from} ${bar.number}`}
                    bar={bar}
                    left={place(bar.from)}
                    right={place(bar.to)}
                  />
                ))}
                {row.planned !== null && (
                  <span
                    className="bar planned"
                    style={{
                      left: percent(past + (AHEAD * row.planned) / plannedCount),
                      width: percent(AHEAD / plannedCount),
                    }}
                  />
                )}
              </span>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

const Label = memo(function Label({ row }: { row: Row }) {
  const { step } = row;
  const tries = step.attempt > 1 ? `${step.attempt} tries` : "";
  const spent = row.bars.filter((bar) => bar.kind !== "undo").reduce((sum, bar) => sum + bar.to - bar.from, 0);
  return (
    <span className="label">
      <StateMark state={step.state} />
      <span className="name">{step.name}</span>
      {step.key && <span className="step-key">{step.key}</span>}
      <span className="sr">{step.state}</span>
      <span className="spring" />
      {tries && <span className="tries">{tries}</span>}
      {row.bars.length > 0 && <span className="took">{duration(spent)}</span>}
    </span>
  );
});

function BarShape({ bar, left, right }: { bar: Bar; left: number; right: number }) {
  return (
    <span
      className={`bar ${bar.kind} ${lookOf(bar)}`}
      style={{ left: percent(left), width: `max(3px, ${percent(right - left)})` }}
    />
  );
}
