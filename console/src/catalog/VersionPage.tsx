// One version: how far it has come, what stands between it and the next status, and what it needs and gives.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { OFTEN, oneOptions, SELDOM } from "../api/queries";
import type { Explanation, Gates, Version, VersionStatus } from "../api/types";
import { DeployLink } from "../deploy/DeployLink";
import { Json } from "../run/Json";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Copy } from "../ui/Copy";
import { Crumbs } from "../ui/Crumbs";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/Feedback";
import { StateWord } from "../ui/State";
import { Canary } from "./Canary";
import { ExplainView } from "./ExplainView";
import { GateList } from "./GateList";
import { Moves } from "./Moves";

export function VersionPage() {
  const place = usePlace();
  const { slug, version: name } = useParams({ from: "/$place/catalog/$slug/$version" });
  const path = `/apps/catalog/${slug}/versions/${name}`;
  const version = useQuery(oneOptions<Version>("version", path, OFTEN));
  const gates = useQuery(oneOptions<Gates>("gates", `${path}/gates`, OFTEN));
  const explained = useQuery(oneOptions<Explanation>("explain", `${path}/explain`, SELDOM * 4));
  if (version.error && !version.data) return <Problem error={version.error} again={() => void version.refetch()} />;
  if (!version.data) return <Loading what="the version" />;
  const here = { place: place.id };
  return (
    <>
      <Crumbs
        above={[
          { name: "Catalog", link: { to: "/$place/catalog", params: here } },
          { name: slug, link: { to: "/$place/catalog/$slug", params: { ...here, slug } } },
        ]}
      />
      <div className="head">
        <h1>
          {slug} {name}
        </h1>
        <StateWord state={version.data.status} />
        <span className="spring" />
        {/* What may be done with a canary stands beside how it goes. */}
        {!(version.data.status === "canary" && gates.data) && <Moves version={version.data} gates={gates.data} />}
        {["active", "canary"].includes(version.data.status) && <DeployLink slug={slug} version={name} />}
      </div>
      <Rollout status={version.data.status} />
      <VersionFacts version={version.data} />
      {gates.error && <Problem error={gates.error} />}
      {gates.data && <Canary version={version.data} gates={gates.data} />}
      {gates.data && <GateList gates={gates.data} />}
      {explained.error && <Problem error={explained.error} />}
      {explained.data && <ExplainView of={explained.data} />}
      <section className="part" aria-label="Manifest">
        <Json title="Manifest" value={version.data.manifest} />
      </section>
    </>
  );
}

const WAY: VersionStatus[] = ["draft", "staged", "canary", "active", "deprecated", "retired"];

/** The way that every version goes, and where this one stands. */
function Rollout({ status }: { status: VersionStatus }) {
  const at = WAY.indexOf(status);
  return (
    <ol className="way" aria-label="Rollout">
      {WAY.map((one, index) => (
        <li key={one} className={index < at ? "past" : undefined} aria-current={index === at ? "step" : undefined}>
          {one}
        </li>
      ))}
    </ol>
  );
}

function VersionFacts({ version }: { version: Version }) {
  const digest = (
    <Copy text={version.content_digest} label="Copy the digest">
      <code>{version.content_digest.slice(0, 19)}…</code>
    </Copy>
  );
  return (
    <Facts
      facts={[
        ["Why it is here", version.status_reason],
        ["Registered", dayAndTime(version.created_at)],
        ["Changed", dayAndTime(version.updated_at)],
        ["Content", digest],
      ]}
    />
  );
}
