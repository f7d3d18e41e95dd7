// The picture of a run: a row per step, bars on one axis, the present as a line, and what lies ahead in outline behind it.
// A row is drawn again only when something in it changed; what is live moves by itself.
import { memo } from "react";
import { duration } from "../time";
import { useNow } from "../ui/now";
import { StateMark } from "../ui/State";
import { type Bar, type Waterfall as Drawn, lookOf, type Row } from "./layout";

/** The part of the width that steps ahead may take. */
const AHEAD = 0.16;
const TICK_MS = 250;

interface Props {
  drawn: Drawn;
  live: boolean;
  chosen: string | undefined;
  /** The same function as long as the run is. */
  onChoose: (step: string | undefined) => void;
}

const percent = (part: number) => `${(part * 100).toFixed(3)}%`;

export const Waterfall = memo(function Waterfall({ drawn, live, chosen, onChoose }: Props) {
  return (
    <div className="waterfall">
      <Ground drawn={drawn} live={live} />
      <ol>
        {drawn.rows.map((row) => (
          <Line key={row.id} row={row} drawn={drawn} chosen={row.id === chosen} onChoose={onChoose} />
        ))}
      </ol>
    </div>
  );
});

/** The part of the width that the past takes. */
const pastOf = (drawn: Drawn) => (drawn.plannedCount > 0 ? 1 - AHEAD : 1);

const placeOf = (drawn: Drawn, moment: number) => drawn.scale.at(moment) * pastOf(drawn);

function Ground({ drawn, live }: { drawn: Drawn; live: boolean }) {
  const { scale, plannedCount } = drawn;
  const past = pastOf(drawn);
  return (
    <>
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
              <em>
                <Folded from={fold.from} to={fold.to} growing={live && fold.to === scale.to} /> folded
              </em>
            </span>
          ))}
          {live && <Present drawn={drawn} />}
        </div>
      </div>
    </>
  );
}

/** The last stretch of a run that goes on is as long as it is by now. */
function Folded({ from, to, growing }: { from: number; to: number; growing: boolean }) {
  const now = useNow(1000, growing);
  return duration((growing ? Math.min(now, to) : to) - from);
}

function Present({ drawn }: { drawn: Drawn }) {
  const now = useNow(TICK_MS);
  return <span className="now" style={{ left: percent(placeOf(drawn, now)) }} />;
}

interface LineProps {
  row: Row;
  drawn: Drawn;
  chosen: boolean;
  onChoose: Props["onChoose"];
}

const Line = memo(function Line({ row, drawn, chosen, onChoose }: LineProps) {
  return (
    <li className={row.planned === null ? "" : "ahead"}>
      <button
        type="button"
        aria-expanded={chosen}
        className={chosen ? "chosen" : ""}
        onClick={() => onChoose(chosen ? undefined : row.id)}
      >
        <Label row={row} />
        <span className="plot" aria-hidden="true">
          {row.bars.map((bar) => {
            const key = `${bar.kind} ${bar.from} ${bar.number}`;
            return bar.outcome === "live" ? (
              <LiveBar key={key} bar={bar} drawn={drawn} />
            ) : (
              <BarShape key={key} bar={bar} {...edgesOf(bar, drawn)} />
            );
          })}
          {row.planned !== null && <span className="bar planned" style={plannedStyle(row.planned, drawn)} />}
        </span>
      </button>
    </li>
  );
}, isSame);

/** A new layout leaves most rows where they were. */
function isSame(before: LineProps, after: LineProps): boolean {
  if (before.chosen !== after.chosen || before.onChoose !== after.onChoose) return false;
  if (before.drawn === after.drawn) return true;
  const [was, is] = [before.row, after.row];
  if (was.step !== is.step || was.live || is.live || was.bars.length !== is.bars.length) return false;
  if (was.planned !== is.planned || (is.planned !== null && before.drawn.plannedCount !== after.drawn.plannedCount))
    return false;
  return was.bars.every((bar, at) => {
    const other = is.bars[at] as Bar;
    const [old, fresh] = [edgesOf(bar, before.drawn), edgesOf(other, after.drawn)];
    return (
      bar.kind === other.kind && bar.outcome === other.outcome && old.left === fresh.left && old.width === fresh.width
    );
  });
}

function Label({ row }: { row: Row }) {
  const { step } = row;
  const tries = step.attempt > 1 ? `${step.attempt} tries` : "";
  return (
    <span className="label">
      <StateMark state={step.state} />
      <span className="name">{step.name}</span>
      {step.key && <span className="step-key">{step.key}</span>}
      <span className="sr">{step.state}</span>
      <span className="spring" />
      {tries && <span className="tries">{tries}</span>}
      {row.bars.length > 0 && (
        <span className="took">
          <Took row={row} />
        </span>
      )}
    </span>
  );
}

function Took({ row }: { row: Row }) {
  const now = useNow(TICK_MS, row.live);
  const forward = row.bars.filter((bar) => bar.kind !== "undo");
  return duration(forward.reduce((sum, bar) => sum + endOf(bar, now) - bar.from, 0));
}

/** What goes on ends at the present, for now. */
function endOf(bar: Bar, now: number): number {
  return bar.outcome === "live" ? Math.max(bar.from, Math.min(bar.to, now)) : bar.to;
}

function LiveBar({ bar, drawn }: { bar: Bar; drawn: Drawn }) {
  const now = useNow(TICK_MS);
  return <BarShape bar={bar} {...edgesOf({ from: bar.from, to: endOf(bar, now) }, drawn)} />;
}

function edgesOf({ from, to }: { from: number; to: number }, drawn: Drawn): { left: string; width: string } {
  const left = placeOf(drawn, from);
  return { left: percent(left), width: percent(placeOf(drawn, to) - left) };
}

function BarShape({ bar, left, width }: { bar: Bar; left: string; width: string }) {
  return <span className={`bar ${bar.kind} ${lookOf(bar)}`} style={{ left, width: `max(3px, ${width})` }} />;
}

function plannedStyle(planned: number, { plannedCount }: Drawn) {
  return { left: percent(1 - AHEAD + (AHEAD * planned) / plannedCount), width: percent(AHEAD / plannedCount) };
}
