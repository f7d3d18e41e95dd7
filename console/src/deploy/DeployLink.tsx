// The way to the form, for those who may deploy.
import { Link } from "@tanstack/react-router";
import { may } from "../place";
import { usePlace } from "../shell/Shell";

export function DeployLink({ slug, version }: { slug: string; version: string | null | undefined }) {
  const place = usePlace();
  if (!version || place.isPlatform || !may(place, "apps.instance.create")) return null;
  return (
    <Link
      className="button primary"
      to="/$place/catalog/$slug/$version/deploy"
      params={{ place: place.id, slug, version }}
    >
      Deploy
    </Link>
  );
}
