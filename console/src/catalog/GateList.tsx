// What stands between a version and where it could go: every move that is legal now, with its gates red and green.
import type { Gate, Gates, Transition } from "../api/types";
import { StateWord } from "../ui/State";

export function GateList({ gates }: { gates: Gates }) {
  const legal = gates.transitions.filter((one) => one.to);
  if (legal.length === 0) return null;
  return (
    <section className="part" aria-label="Gates">
      <h2>What comes next</h2>
      <div className="moves">
        {legal.map((transition) => (
          <Move key={transition.action} transition={transition} />
        ))}
      </div>
    </section>
  );
}

function Move({ transition }: { transition: Transition }) {
  const { action, to, open, gates } = transition;
  return (
    <article className="panel" aria-label={action}>
      <header>
        <h3>{action[0]?.toUpperCase() + action.slice(1)}</h3>
        {to && <StateWord state={to} />}
        <span className="spring" />
        <span className={open ? "tone-good" : "tone-bad"}>{open ? "open" : "blocked"}</span>
      </header>
      {gates.length === 0 && <p className="quiet">Nothing is checked.</p>}
      <ul className="gates">
        {gates.map((gate) => (
          <Light key={gate.check} gate={gate} />
        ))}
      </ul>
    </article>
  );
}

const LIGHTS = {
  green: ["tone-good", "M6.6 12.2 2.9 8.5l1.3-1.3 2.4 2.4 5.2-5.2 1.3 1.3z", "green"],
  red: [
    "tone-bad",
    "M4.4 3.2 8 6.8l3.6-3.6 1.2 1.2L9.2 8l3.6 3.6-1.2 1.2L8 9.2l-3.6 3.6-1.2-1.2L6.8 8 3.2 4.4z",
    "red",
  ],
  not_applicable: ["tone-quiet", "M3.5 7.1h9v1.8h-9z", "not applicable"],
} as const;

function Light({ gate }: { gate: Gate }) {
  const [tone, glyph, word] = LIGHTS[gate.light];
  return (
    <li>
      <svg className={`mark ${tone}`} viewBox="0 0 16 16" role="img" aria-label={word}>
        <path d={glyph} />
      </svg>
      <span>
        <strong>{gate.check.replaceAll("_", " ")}</strong>
        <span className="subject">{gate.message}</span>
      </span>
    </li>
  );
}
