// Who still uses an artifact, so that it cannot go: instances, versions that were frozen with it, releases of the platform.
import { Link } from "@tanstack/react-router";
import { usePlace } from "../shell/Shell";

export interface Uses {
  instances: { app_instance_id: string; project_id: string; standing: string; status: string }[];
  versions: { version_id: string; app_slug: string; version: string; status: string }[];
  releases: string[];
  /** However many are listed. */
  totals: { instances: number; versions: number; releases: number };
}

export function UsesList({ uses }: { uses: Uses | undefined }) {
  const place = usePlace();
  if (!uses) return null;
  const { instances, versions, releases, totals } = uses;
  const left = totals.instances + totals.versions + totals.releases;
  const more = left - instances.length - versions.length - releases.length;
  return (
    <ul className="plain-list" aria-label="What uses it">
      {instances.map((one) => (
        <li key={`${one.app_instance_id} ${one.standing}`}>
          instance{" "}
          {one.project_id === place.id ? (
            <Link to="/$place/instances/$instance" params={{ place: place.id, instance: one.app_instance_id }}>
              {one.app_instance_id.slice(-12)}
            </Link>
          ) : (
            one.app_instance_id.slice(-12)
          )}
          : {one.standing}, {one.status}
        </li>
      ))}
      {versions.map((one) => (
        <li key={one.version_id}>
          version {one.app_slug} {one.version}: {one.status}
        </li>
      ))}
      {releases.map((version) => (
        <li key={version}>release {version} of the platform</li>
      ))}
      {more > 0 && <li>and {more} more</li>}
    </ul>
  );
}
