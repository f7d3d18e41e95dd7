// Stacked columns over time. What a column holds is told when it is pointed at or reached by keys; the table below says
// all of it in numbers.
import { useState } from "react";
import { onAxis } from "./amounts";
import { type Column, ceiling, type Drawn, type Width } from "./sums";

interface Props {
  drawn: Drawn;
  width: Width;
  of: string;
  currency: string | null;
  /** A group by its name. */
  name: (group: string) => string;
  /** An amount in words. */
  words: (amount: number) => string;
}

const LINES = [1, 0.5, 0];

export function Chart({ drawn, width, of, currency, name, words }: Props) {
  const [at, setAt] = useState<number | null>(null);
  const { columns, groups } = drawn;
  const top = ceiling(drawn.most);
  const pointed = at === null ? null : columns[at];
  const every = Math.max(1, Math.ceil(columns.length / 7));
  return (
    <figure className="chart">
      <div className="chart-plot">
        {LINES.map((part) => (
          <span key={part} className="chart-line" style={{ bottom: `${part * 100}%` }} aria-hidden="true">
            <em>{onAxis(top * part, of, currency)}</em>
          </span>
        ))}
        <ul className="chart-columns" aria-label="Columns" onMouseLeave={() => setAt(null)}>
          {columns.map((column, index) => (
            <li key={column.start} onMouseEnter={() => setAt(index)} className={index === at ? "pointed" : undefined}>
              <span className="sr">
                {when(column.start, width)}: {words(column.total)}
              </span>
              {column.parts.map((part, group) => (
                <span
                  key={groups[group]?.id}
                  className={`part-of colour-${group}`}
                  style={{ height: `${(part / top) * 100}%` }}
                  aria-hidden="true"
                />
              ))}
            </li>
          ))}
        </ul>
      </div>
      <div className="chart-axis" aria-hidden="true">
        {columns.map((column, index) => (
          <span key={column.start}>
            {index % every === 0 && index < columns.length - every / 2 ? (
              <em className={index % (every * 2) === 0 ? undefined : "minor"}>{onScale(column.start, width)}</em>
            ) : null}
          </span>
        ))}
      </div>
      <figcaption>
        <ul className="legend">
          {groups.map((group, index) => (
            <li key={group.id}>
              <span className={`key colour-${index}`} aria-hidden="true" />
              {name(group.id)}
            </li>
          ))}
        </ul>
        <Told column={pointed} {...{ drawn, width, name, words }} />
      </figcaption>
    </figure>
  );
}

interface Telling {
  column: Column | null | undefined;
  drawn: Drawn;
  width: Width;
  name: (group: string) => string;
  words: (amount: number) => string;
}

/** Always there, so that nothing moves when something is pointed at. */
function Told({ column, drawn, width, name, words }: Telling) {
  if (!column) return <p className="quiet">Together {words(drawn.total)}. Point at a column for what is in it.</p>;
  const parts = column.parts.flatMap((part, at) =>
    part > 0 ? [`${name(drawn.groups[at]?.id ?? "")} ${words(part)}`] : [],
  );
  return (
    <p>
      <strong>{when(column.start, width)}</strong> {words(column.total)}
      {parts.length > 1 && <span className="quiet"> · {parts.join(" · ")}</span>}
    </p>
  );
}

/** Beside each other, hours need no day but where it begins. */
function onScale(start: number, width: Width): string {
  if (width !== "hour") return when(start, width);
  const hour = new Date(start).toISOString().slice(11, 16);
  return hour === "00:00" ? when(start, "day") : hour;
}

/** Windows are the API's, which are in UTC. */
export function when(start: number, width: Width): string {
  const date = new Date(start);
  const options: Record<Width, Intl.DateTimeFormatOptions> = {
    hour: { hour: "2-digit", minute: "2-digit", day: "numeric", month: "short" },
    day: { day: "numeric", month: "short" },
    month: { month: "short", year: "numeric" },
  };
  return date.toLocaleString("en-GB", { ...options[width], timeZone: "UTC" });
}
