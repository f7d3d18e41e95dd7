// One artifact: what it is, what its last verification found, and what may be done with it.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { oneOptions, SELDOM } from "../api/queries";
import type { Artifact } from "../api/types";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Copy, curl } from "../ui/Copy";
import { Crumbs } from "../ui/Crumbs";
import { Facts } from "../ui/Facts";
import { Loading, Problem } from "../ui/Feedback";
import { StateWord } from "../ui/State";
import { ArtifactActions } from "./Actions";
import { bytes } from "./ArtifactsPage";
import { EvidencePanel } from "./Evidence";

export function ArtifactPage() {
  const place = usePlace();
  const { artifact: id } = useParams({ from: "/$place/artifacts/$artifact" });
  const path = `${place.path}/app-artifacts/${id}`;
  const artifact = useQuery(oneOptions<Artifact>("artifact", path, SELDOM));
  if (artifact.error && !artifact.data) return <Problem error={artifact.error} again={() => void artifact.refetch()} />;
  if (!artifact.data) return <Loading what="the artifact" />;
  const shown = artifact.data;
  return (
    <>
      <Crumbs above={[{ name: "Artifacts", link: { to: "/$place/artifacts", params: { place: place.id } } }]} />
      <div className="head">
        <h1>
          {shown.app_slug} {shown.app_version} {shown.artifact_name}
        </h1>
        <StateWord state={shown.trust_state} />
        <StateWord state={shown.lifecycle_state} />
        <span className="spring" />
        <ArtifactActions artifact={shown} path={path} />
      </div>
      <ArtifactFacts artifact={shown} path={path} />
      <EvidencePanel evidence={shown.evidence} />
    </>
  );
}

function ArtifactFacts({ artifact, path }: { artifact: Artifact; path: string }) {
  const digest = (
    <Copy text={artifact.digest} label="Copy the digest">
      <code>{artifact.digest}</code>
    </Copy>
  );
  return (
    <Facts
      facts={[
        ["Digest", digest],
        ["Variant", artifact.variant],
        ["Channels", artifact.channels.length > 0 ? artifact.channels.join(", ") : "none"],
        ["Repository", artifact.repository ?? artifact.source_uri],
        ["Media type", artifact.media_type],
        ["Size", bytes(artifact.size_bytes)],
        ["Published", dayAndTime(artifact.created_at)],
        ["Same for a terminal", <Copy key="curl" text={curl("GET", path)} label="Copy as curl" />],
      ]}
    />
  );
}
