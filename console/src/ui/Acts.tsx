// The buttons of what may be done with something now: what its state allows, as the server says, and what this person holds.
import { type ReactNode, useState } from "react";
import type { Permission } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";

export interface Act {
  name: string;
  needs: Permission;
  looks?: "primary" | "danger";
  /** What happens then. */
  tells: string;
}

interface Offered<Verb extends string> {
  acts: Record<Verb, Act>;
  allowed: readonly string[];
  /** The question that a button leads to. */
  ask: (verb: Verb, onClose: () => void) => ReactNode;
}

export function Acts<Verb extends string>({ acts, allowed, ask }: Offered<Verb>) {
  const place = usePlace();
  const [chosen, choose] = useState<Verb | null>(null);
  const verbs = (Object.keys(acts) as Verb[]).filter((verb) => allowed.includes(verb) && may(place, acts[verb].needs));
  return (
    <fieldset className="actions" aria-label="Actions">
      {verbs.map((verb) => (
        <button key={verb} type="button" className={acts[verb].looks} onClick={() => choose(verb)}>
          {acts[verb].name}
        </button>
      ))}
      {chosen && ask(chosen, () => choose(null))}
    </fieldset>
  );
}
