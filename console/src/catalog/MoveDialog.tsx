// The question before a version moves. The gates say beforehand whether it would.
import { useState } from "react";
import type { Gates, Version } from "../api/types";
import { AskDialog } from "../ui/Ask";
import { CanaryProjects } from "./CanaryProjects";

export const VERBS = ["stage", "canary", "publish", "rollback", "deprecate", "retire"] as const;
export type Verb = (typeof VERBS)[number];

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

const widens = (verb: Verb, version: Version) => verb === "canary" && version.status === "canary";

export function nameOf(verb: Verb, version: Version): string {
  return widens(verb, version) ? "Widen canary" : NAMES[verb];
}

interface Moving {
  verb: Verb;
  version: Version;
  gates: Gates | undefined;
  onClose: () => void;
}

export function MoveDialog({ verb, version, gates, onClose }: Moving) {
  const [percent, setPercent] = useState(String(nextShare(version)));
  const [projects, setProjects] = useState<string[]>([]);
  const [supersede, setSupersede] = useState(false);
  const { app_slug, version: slot } = version;
  const named = projects.length > 0 ? { project_ids: projects } : {};
  const bodies: Partial<Record<Verb, Record<string, unknown>>> = {
    canary: { percent: Number(percent), ...named },
    publish: { supersede },
  };
  const name = nameOf(verb, version);
  return (
    <AskDialog
      title={`${name}: ${app_slug} ${slot}`}
      confirm={name}
      danger={verb === "retire"}
      path={`/admin/apps/catalog/${app_slug}/versions/${slot}/${verb}`}
      body={bodies[verb] ?? {}}
      reasoned
      renews={["version", "versions", "gates", "apps"]}
      onClose={onClose}
    >
      <p>{widens(verb, version) ? "More projects may deploy it. Whoever is in stays in." : SENTENCES[verb]}</p>
      <WouldRefuse verb={verb} gates={gates} />
      {verb === "canary" && (
        <>
          <label className="field">
            Percent of projects
            <input
              type="number"
              required
              min={version.canary?.percent ?? 0}
              max={100}
              value={percent}
              onChange={(event) => setPercent(event.target.value)}
            />
          </label>
          <CanaryProjects inAlready={version.canary?.project_ids ?? []} chosen={projects} onChange={setProjects} />
        </>
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

/** A canary begins with a tenth and only grows. */
function nextShare({ status, canary }: Version): number {
  if (status !== "canary" || !canary) return 10;
  return [5, 10, 25, 50, 100].find((share) => share > canary.percent) ?? 100;
}

function WouldRefuse({ verb, gates }: { verb: Verb; gates: Gates | undefined }) {
  const red = gates?.transitions.find((one) => one.action === verb)?.gates.filter((gate) => gate.light === "red") ?? [];
  if (red.length === 0) return null;
  return (
    <div className="feedback problem">
      <strong>It would be refused now:</strong>
      {red.map((gate) => (
        <p key={gate.check}>{gate.message}</p>
      ))}
    </div>
  );
}
