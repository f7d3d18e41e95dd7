// What was published, how far it is trusted, and the keys whose signatures count.
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type ArtifactFilter, useArtifacts } from "../api/queries";
import { type Artifact, LIFECYCLES, TRUSTS } from "../api/types";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime } from "../time";
import { Empty } from "../ui/Feedback";
import { FilterBar } from "../ui/FilterBar";
import { Choice, Written } from "../ui/Filters";
import { Listed } from "../ui/Listed";
import { useNow } from "../ui/now";
import { useRowKeys } from "../ui/rows";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";
import { Tabs } from "../ui/Tabs";
import { SigningKeys } from "./SigningKeys";

export function ArtifactsPage() {
  const { view, ...filter } = useSearch({ from: "/$place/artifacts" });
  const keys = view === "keys";
  return (
    <>
      <div className="head">
        <h1>Artifacts</h1>
      </div>
      <p className="lead">
        Images and files that versions run, named by digest. Only what is verified can be deployed.
      </p>
      <Tabs
        label="What to show"
        tabs={[
          { name: "Artifacts", search: {} },
          { name: "Signing keys", search: { view: "keys" } },
        ]}
      />
      {keys ? <SigningKeys /> : <Artifacts filter={filter} />}
    </>
  );
}

function Artifacts({ filter }: { filter: ArtifactFilter }) {
  const artifacts = useArtifacts(usePlace(), filter);
  const navigate = useNavigate({ from: "/$place/artifacts" });
  const now = useNow(1000);
  useRowKeys("a.row-link");
  const inUse = Object.keys(filter).length;
  const set = (name: keyof ArtifactFilter) => (value: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, [name]: value }) });
  const columns: Column<Artifact>[] = [
    { head: "Artifact", cell: (artifact) => <Name artifact={artifact} />, title: true },
    { head: "Trust", cell: (artifact) => <StateWord state={artifact.trust_state} /> },
    { head: "Lifecycle", cell: (artifact) => <StateWord state={artifact.lifecycle_state} /> },
    { head: "Channels", cell: (artifact) => artifact.channels.join(", ") },
    { head: "Size", cell: (artifact) => bytes(artifact.size_bytes), className: "number nowrap" },
    {
      head: "Published",
      cell: (artifact) => <time title={dayAndTime(artifact.created_at)}>{ago(artifact.created_at, now)}</time>,
      className: "nowrap",
    },
  ];
  return (
    <>
      <FilterBar inUse={inUse}>
        <Written label="App" value={filter.app_slug} onChange={set("app_slug")} />
        <Written label="Version" value={filter.app_version} onChange={set("app_version")} />
        <Choice label="Trust" value={filter.trust_state} options={TRUSTS} onChange={set("trust_state")} />
        <Choice
          label="Lifecycle"
          value={filter.lifecycle_state}
          options={LIFECYCLES}
          onChange={set("lifecycle_state")}
        />
        <Written label="Digest" value={filter.digest} onChange={set("digest")} placeholder="sha256:…" />
      </FilterBar>
      <Listed list={artifacts} what="artifacts" empty={<NoArtifacts filtered={inUse > 0} />}>
        {(items) => <Table label="Artifacts" columns={columns} rows={items} id={(artifact) => artifact.id} />}
      </Listed>
    </>
  );
}

function NoArtifacts({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No artifact matches these filters">Take one away to see more.</Empty>;
  return (
    <Empty title="Nothing was published yet">
      An app team asks for a publish intent, pushes the image, and registers its digest.
    </Empty>
  );
}

function Name({ artifact }: { artifact: Artifact }) {
  const place = usePlace();
  return (
    <>
      <Link className="row-link" to="/$place/artifacts/$artifact" params={{ place: place.id, artifact: artifact.id }}>
        <strong>
          {artifact.app_slug} {artifact.app_version}
        </strong>{" "}
        {artifact.artifact_name}
        {artifact.variant && ` · ${artifact.variant}`}
      </Link>
      <span className="subject id">{artifact.digest.slice(0, 26)}…</span>
    </>
  );
}

/** `1.4 MB`, by thousands as registries count. */
export function bytes(count: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(count) / 3));
  const value = count / 1000 ** step;
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[step]}`;
}
