// A canary under way: to whom the version is open, how their deployments went against what is tolerated, and what can be
// done about it.
import { useQuery } from "@tanstack/react-query";
import { places } from "../api/queries";
import type { Gate, Gates, Version } from "../api/types";
import { counted } from "../runtime";
import { Facts } from "../ui/Facts";
import { Moves } from "./Moves";

interface Samples {
  succeeded: number;
  failed: number;
  failure_rate: number | null;
  max_failure_rate: number;
  min_samples: number;
}

export function Canary({ version, gates }: { version: Version; gates: Gates }) {
  const publish = gates.transitions.find((one) => one.action === "publish");
  const judged = publish?.gates.find((gate) => gate.check === "failure_rate");
  if (!version.canary || version.status !== "canary") return <Halted version={version} />;
  return (
    <section className="panel" aria-label="Canary">
      <header>
        <h2>Canary</h2>
        {judged && <span className={judged.light === "red" ? "tone-bad" : "quiet"}>{judged.message}</span>}
        <span className="spring" />
        <Moves version={version} gates={gates} />
      </header>
      {judged && <Meter samples={judged.evidence as unknown as Samples} />}
      <Facts facts={[["Open to", <OpenTo key="who" canary={version.canary} />], ...judgement(judged)]} />
      <p>
        <strong>Held at {version.canary.percent} % of projects.</strong> Nothing lets more in by itself: it stays so
        until somebody widens it, publishes it for all or rolls it back for none. Only too many failed deployments move
        it, back to staged.
      </p>
    </section>
  );
}

function judgement(judged: Gate | undefined): [string, string | null][] {
  if (!judged) return [];
  const samples = judged.evidence as unknown as Samples;
  const all = samples.succeeded + samples.failed;
  return [
    ["Succeeded", String(samples.succeeded)],
    ["Failed", String(samples.failed)],
    ["Tolerated", `${percent(samples.max_failure_rate)} of at least ${samples.min_samples}`],
    ["Still to come", all < samples.min_samples ? counted(samples.min_samples - all, "deployment") : null],
  ];
}

/** Which projects are in by name is told to the platform's people only. */
function OpenTo({ canary }: { canary: NonNullable<Version["canary"]> }) {
  const known = useQuery(places).data?.places ?? [];
  const named = (canary.project_ids ?? []).map((id) => known.find((place) => place.id === id)?.name ?? id.slice(-12));
  return (
    <>
      {canary.percent} % of projects{named.length > 0 && ", and by name "}
      {named.map((name) => (
        <span key={name} className="chip">
          {name}
        </span>
      ))}
    </>
  );
}

const percent = (part: number) => `${Math.round(part * 1000) / 10} %`;

/** The share that failed, and the line it may not cross. */
function Meter({ samples }: { samples: Samples }) {
  const all = samples.succeeded + samples.failed;
  const failed = all === 0 ? 0 : samples.failed / all;
  const text = `${percent(failed)} failed, ${percent(samples.max_failure_rate)} is tolerated`;
  return (
    <svg className="meter" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label={text}>
      <rect className="ground" width="100" height="6" />
      {all > 0 && <rect className="good" width={(1 - failed) * 100} x={failed * 100} height="6" />}
      <rect className="bad" width={failed * 100} height="6" />
      <rect className="line" x={samples.max_failure_rate * 100} width="0.4" height="6" />
    </svg>
  );
}

/** A canary that stopped itself leaves behind what it was judged by. */
function Halted({ version }: { version: Version }) {
  if (version.status !== "staged" || !version.evidence) return null;
  const samples = version.evidence as unknown as Samples;
  return (
    <section className="cause blocked" aria-label="Halted canary">
      <h2>The canary halted itself</h2>
      <p>
        {samples.failed} of {samples.succeeded + samples.failed} deployments failed; {percent(samples.max_failure_rate)}{" "}
        is tolerated.
      </p>
    </section>
  );
}
