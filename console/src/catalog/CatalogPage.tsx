// What can be run: the apps that the project may deploy, or everything the platform knows.
import { Link, useSearch } from "@tanstack/react-router";
import { useApps } from "../api/queries";
import type { App } from "../api/types";
import { useEntitlements } from "../api/whole";
import { may, type Place } from "../place";
import { backendName } from "../runtime";
import { usePlace } from "../shell/Shell";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { useRowKeys } from "../ui/rows";
import { type Column, Table } from "../ui/Table";
import { Tabs } from "../ui/Tabs";
import { Submissions } from "./Submissions";

export function CatalogPage() {
  const place = usePlace();
  const { view } = useSearch({ from: "/$place/catalog" });
  const all = place.isPlatform || view === "all";
  return (
    <>
      <div className="head">
        <h1>Catalog</h1>
      </div>
      <p className="lead">
        {place.isPlatform
          ? "Every app of the platform. Open one to roll its versions out."
          : "Apps that run on this project's allocations. A project deploys what it is entitled to."}
      </p>
      <Tabs label="What to show" tabs={tabsOf(place)} />
      {view === "reviews" ? <Submissions /> : <Apps place={place} all={all} />}
    </>
  );
}

function tabsOf(place: Place) {
  const reviews = { name: place.isPlatform ? "Reviews" : "Sent for review", search: { view: "reviews" } };
  if (place.isPlatform) return [{ name: "Apps", search: {} }, ...(may(place, "apps.version.manage") ? [reviews] : [])];
  return [{ name: "Ready to deploy", search: {} }, { name: "All apps", search: { view: "all" } }, reviews];
}

function Apps({ place, all }: { place: Place; all: boolean }) {
  const apps = useApps(place, all);
  useRowKeys("a.row-link");
  const columns: Column<App>[] = [
    { head: "App", cell: (app) => <AppName app={app} />, title: true },
    { head: "Runs as", cell: (app) => backendName(app.runtime_backend), className: "nowrap" },
    place.isPlatform
      ? {
          head: "Active",
          cell: (app) => app.active_version ?? <span className="quiet">none</span>,
          className: "nowrap",
        }
      : { head: "You may deploy", cell: (app) => <Offer app={app} />, className: "nowrap" },
    { head: "Newest", cell: (app) => app.newest_version, className: "nowrap" },
    ...(all && !place.isPlatform && may(place, "apps.entitlement.read") ? [entitled()] : []),
  ];
  return (
    <Listed list={apps} what="the catalog" empty={<NoApps place={place} all={all} />}>
      {(items) => <Table label="Apps" columns={columns} rows={items} id={(app) => app.id} />}
    </Listed>
  );
}

function NoApps({ place, all }: { place: Place; all: boolean }) {
  if (all) return <Empty title="The catalog is empty">A platform admin registers apps by their manifests.</Empty>;
  return (
    <Empty title="Nothing to deploy yet">
      An app appears here once the project is entitled to it and one of its versions is rolled out. See{" "}
      <Link to="/$place/catalog" params={{ place: place.id }} search={{ view: "all" }}>
        all apps
      </Link>
      .
    </Empty>
  );
}

function AppName({ app }: { app: App }) {
  const place = usePlace();
  return (
    <>
      <Link className="row-link" to="/$place/catalog/$slug" params={{ place: place.id, slug: app.slug }}>
        <strong>{app.display_name}</strong> <span className="id">{app.slug}</span>
      </Link>
      {app.description && <span className="subject">{app.description}</span>}
    </>
  );
}

function Offer({ app }: { app: App }) {
  return app.offered_version ? <strong>{app.offered_version}</strong> : <span className="quiet">nothing yet</span>;
}

function entitled(): Column<App> {
  return { head: "Entitled", cell: (app) => <Entitled slug={app.slug} />, className: "nowrap" };
}

function Entitled({ slug }: { slug: string }) {
  const known = useEntitlements(usePlace()).data?.items.find((one) => one.app_slug === slug);
  if (!known) return <span className="quiet">no</span>;
  return known.enabled ? <span className="tone-good">yes</span> : <span className="tone-hold">switched off</span>;
}
