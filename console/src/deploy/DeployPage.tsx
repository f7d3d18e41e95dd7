// Deploying a version: a form made from what the version says of itself, and a run to watch.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { oneOptions, SELDOM } from "../api/queries";
import type { Explanation, Version } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { Crumbs } from "../ui/Crumbs";
import { Empty, Loading, Problem } from "../ui/Feedback";
import { DeployForm } from "./DeployForm";

export function DeployPage() {
  const place = usePlace();
  const { slug, version: name } = useParams({ from: "/$place/catalog/$slug/$version/deploy" });
  const path = `/apps/catalog/${slug}/versions/${name}`;
  const version = useQuery(oneOptions<Version>("version", path, SELDOM));
  const explained = useQuery(oneOptions<Explanation>("explain", `${path}/explain`, SELDOM * 4));
  const error = version.error ?? explained.error;
  if (error && !version.data) return <Problem error={error} />;
  if (!version.data || !explained.data) return <Loading what="the version" />;
  const params = { place: place.id, slug, version: name };
  return (
    <>
      <Crumbs
        above={[
          { name: "Catalog", link: { to: "/$place/catalog", params } },
          { name: slug, link: { to: "/$place/catalog/$slug", params } },
          { name, link: { to: "/$place/catalog/$slug/$version", params } },
        ]}
      />
      <div className="head">
        <h1>
          Deploy {slug} {name}
        </h1>
      </div>
      {may(place, "apps.instance.create") ? (
        <DeployForm version={version.data} explained={explained.data} />
      ) : (
        <Empty title="You may look, but not deploy">Ask somebody who manages this project for the role operator.</Empty>
      )}
    </>
  );
}
