// What the platform's people may do with a version now. Before anything moves, the gates say whether it would.
import { useState } from "react";
import type { Gates, Version } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { AskDialog } from "../ui/Ask";

type Verb = "stage" | "canary" | "publish" | "rollback" | "deprecate" | "retire";

const NAMES: Record<Verb, string> = {
  stage: "Stage",
  canary: "Start canary",
  publish: "Publish",
  rollback: "Roll back",
  deprecate: "Deprecate",
  retire: "Retire",
};

const SENTENCES: Record<Verb, string> = {
  stage: "Its manifest is frozen from now on, with one digest for each artifact. Nobody can deploy it yet.",
  canary: "The projects you choose may deploy it. If too many deployments fail, it goes back to staged by itself.",
  publish: "Every entitled project may deploy it.",
  rollback: "It goes back to staged: no new deployments. Instances that run it go on.",
  deprecate: "It takes no new instances. Those that run it go on, and a rollback may still lead to it.",
  retire: "It is out of use for good, once no instance uses it. This cannot be taken back.",
};

export function Moves({ version, gates }: { version: Version; gates: Gates | undefined }) {
  const place = usePlace();
  const [chosen, choose] = useState<Verb | null>(null);
  if (!place.isPlatform || !may(place, "apps.version.manage")) return null;
  const verbs = (Object.keys(NAMES) as Verb[]).filter((verb) => version.allowed_actions.includes(verb));
  return (
    <fieldset className="actions" aria-label="Actions">
      {verbs.map((verb) => (
        <button key={verb} type="button" className={look(verb, version)} onClick={() => choose(verb)}>
          {verb === "canary" && version.status === "canary" ? "Widen canary" : NAMES[verb]}
        </button>
      ))}
      {chosen && <Move key={chosen} verb={chosen} version={version} gates={gates} onClose={() => choose(null)} />}
    </fieldset>
  );
}

/** The way forward stands out; what cannot be taken back warns. */
function look(verb: Verb, version: Version): string | undefined {
  if (verb === "retire") return "danger";
  const forward: Partial<Record<Version["status"], Verb>> = { draft: "stage", staged: "canary", canary: "publish" };
  return forward[version.status] === verb ? "primary" : undefined;
}

interface Moving {
  verb: Verb;
  version: Version;
  gates: Gates | undefined;
  onClose: () => void;
}

function Move({ verb, version, gates, onClose }: Moving) {
  const [percent, setPercent] = useState(String(version.canary?.percent ?? 10));
  const [supersede, setSupersede] = useState(false);
  const { app_slug, version: name } = version;
  const red = gates?.transitions.find((one) => one.action === verb)?.gates.filter((gate) => gate.light === "red") ?? [];
  const body = { canary: { percent: Number(percent) }, publish: { supersede } }[verb as string] ?? {};
  return (
    <AskDialog
      title={`${NAMES[verb]}: ${app_slug} ${name}`}
      confirm={NAMES[verb]}
      danger={verb === "retire"}
      path={`/admin/apps/catalog/${app_slug}/versions/${name}/${verb}`}
      body={body}
      reasoned
      renews={["version", "versions", "gates", "apps"]}
      onClose={onClose}
    >
      <p>{SENTENCES[verb]}</p>
      {red.length > 0 && (
        <div className="feedback problem">
          <strong>It would be refused now:</strong>
          {red.map((gate) => (
            <p key={gate.check}>{gate.message}</p>
          ))}
        </div>
      )}
      {verb === "canary" && (
        <label className="field">
          Percent of projects
          <input type="number" min={0} max={100} value={percent} onChange={(event) => setPercent(event.target.value)} />
        </label>
      )}
      {verb === "publish" && (
        <label className="check">
          <input type="checkbox" checked={supersede} onChange={(event) => setSupersede(event.target.checked)} />
          Deprecate the other active versions in the same moment
        </label>
      )}
    </AskDialog>
  );
}
