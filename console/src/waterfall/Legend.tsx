// What the bars of a picture mean: only those that are in it.
import { memo } from "react";
import { lookOf, type Waterfall } from "./layout";

const WORDS: [string, string][] = [
  ["try good", "succeeded"],
  ["try bad", "failed try"],
  ["try going", "under way"],
  ["wait", "waiting"],
  ["backoff", "pause before the next try"],
  ["undo", "undo"],
  ["planned", "planned"],
];

export const Legend = memo(function Legend({ drawn }: { drawn: Waterfall }) {
  const bars = drawn.rows.flatMap((row) => row.bars);
  const looks = new Set(bars.map((bar) => (bar.kind === "try" ? `try ${lookOf(bar)}` : bar.kind)));
  if (drawn.plannedCount > 0) looks.add("planned");
  return (
    <ul className="legend" aria-label="What the bars mean">
      {WORDS.filter(([look]) => looks.has(look)).map(([look, word]) => (
        <li key={word}>
          <span className={`key ${look}`} aria-hidden="true" />
          {word}
        </li>
      ))}
    </ul>
  );
});
