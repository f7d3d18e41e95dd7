// What the platform's people may do with a version now, as the server says.
import { useState } from "react";
import type { Gates, Version } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { MoveDialog, nameOf, VERBS, type Verb } from "./MoveDialog";

export function Moves({ version, gates }: { version: Version; gates: Gates | undefined }) {
  const place = usePlace();
  const [chosen, choose] = useState<Verb | null>(null);
  if (!place.isPlatform || !may(place, "apps.version.manage")) return null;
  const verbs = VERBS.filter((verb) => version.allowed_actions.includes(verb));
  return (
    <fieldset className="actions" aria-label="Actions">
      {verbs.map((verb) => (
        <button key={verb} type="button" className={look(verb, version)} onClick={() => choose(verb)}>
          {nameOf(verb, version)}
        </button>
      ))}
      {chosen && <MoveDialog key={chosen} verb={chosen} version={version} gates={gates} onClose={() => choose(null)} />}
    </fieldset>
  );
}

/** The way forward stands out; what cannot be taken back warns. */
function look(verb: Verb, version: Version): string | undefined {
  if (verb === "retire") return "danger";
  const forward: Partial<Record<Version["status"], Verb>> = { draft: "stage", staged: "canary", canary: "publish" };
  return forward[version.status] === verb ? "primary" : undefined;
}
