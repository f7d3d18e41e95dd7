// One app: what it is, what the project may do with it, and how far each of its versions has come.
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { get } from "../api/client";
import { SELDOM, useVersions } from "../api/queries";
import type { App, Version } from "../api/types";
import { DeployLink } from "../deploy/DeployLink";
import { may } from "../place";
import { backendName } from "../runtime";
import { usePlace } from "../shell/Shell";
import { ago, dayAndTime } from "../time";
import { Crumbs } from "../ui/Crumbs";
import { Facts } from "../ui/Facts";
import { Empty, Loading, Problem } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { useNow } from "../ui/now";
import { useRowKeys } from "../ui/rows";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";
import { EntitlementPanel } from "./Entitlement";

export function AppPage() {
  const place = usePlace();
  const { slug } = useParams({ from: "/$place/catalog/$slug" });
  const view = place.isPlatform ? {} : { project_id: place.id };
  const app = useQuery({
    queryKey: ["apps", place.id, "one", slug],
    queryFn: ({ signal }) => get<App>(`/apps/catalog/${slug}`, view, signal),
    refetchInterval: SELDOM,
  });
  if (app.error && !app.data) return <Problem error={app.error} again={() => void app.refetch()} />;
  if (!app.data) return <Loading what="the app" />;
  return (
    <>
      <Crumbs above={[{ name: "Catalog", link: { to: "/$place/catalog", params: { place: place.id } } }]} />
      <div className="head">
        <h1>{app.data.display_name}</h1>
        <span className="spring" />
        <DeployLink slug={slug} version={app.data.offered_version} />
      </div>
      {app.data.description && <p className="lead">{app.data.description}</p>}
      <Facts
        facts={[
          ["Slug", <code key="slug">{app.data.slug}</code>],
          ["Runs as", backendName(app.data.runtime_backend)],
          ["Category", app.data.category],
          ["You may deploy", place.isPlatform ? null : (app.data.offered_version ?? "nothing yet")],
          ["Active version", app.data.active_version ?? "none"],
          ["In the catalog since", dayAndTime(app.data.created_at)],
        ]}
      />
      {!place.isPlatform && may(place, "apps.entitlement.read") && <EntitlementPanel slug={slug} />}
      <section className="part" aria-label="Versions">
        <h2>Versions</h2>
        <Versions slug={slug} />
      </section>
    </>
  );
}

function Versions({ slug }: { slug: string }) {
  const versions = useVersions(slug);
  const now = useNow(1000);
  useRowKeys("a.row-link");
  const columns: Column<Version>[] = [
    { head: "Version", cell: (version) => <Name version={version} />, title: true },
    { head: "Status", cell: (version) => <Status version={version} /> },
    { head: "Reason", cell: (version) => version.status_reason, className: "why" },
    {
      head: "Changed",
      cell: (version) => <time title={dayAndTime(version.updated_at)}>{ago(version.updated_at, now)}</time>,
      className: "nowrap",
    },
    { head: "Content", cell: (version) => version.content_digest, className: "id clip", wide: true },
  ];
  return (
    <Listed list={versions} what="versions" empty={<Empty title="No version yet" />}>
      {(items) => <Table label="Versions" columns={columns} rows={items} id={(version) => version.id} />}
    </Listed>
  );
}

function Name({ version }: { version: Version }) {
  const place = usePlace();
  const params = { place: place.id, slug: version.app_slug, version: version.version };
  return (
    <Link className="row-link" to="/$place/catalog/$slug/$version" params={params}>
      <strong>{version.version}</strong>
    </Link>
  );
}

function Status({ version }: { version: Version }) {
  return (
    <>
      <StateWord state={version.status} />
      {version.canary && <span className="asked">{version.canary.percent} % of projects</span>}
    </>
  );
}
