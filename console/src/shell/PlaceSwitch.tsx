// From one place to another: to the same page where it is there too, narrowed by what means the same there.
import { useNavigate, useSearch } from "@tanstack/react-router";
import type { Place } from "../place";
import { groupsIn, type PageEntry } from "./pages";

interface Props {
  places: Place[];
  /** There are more than these. */
  more: boolean;
  here: Place;
  section: PageEntry | undefined;
}

export function PlaceSwitch({ places, more, here, section }: Props) {
  const navigate = useNavigate();
  const search = useSearch({ strict: false });
  const go = (id: string) => {
    const there = places.find((place) => place.id === id);
    if (!there) return;
    const same = groupsIn(there).some((group) => group.pages.some((page) => page.path === section?.path));
    const to = `/$place/${same && section ? section.path : "runs"}` as const;
    void navigate({ to, params: { place: id }, search: same ? keptIn(there, search) : {} });
  };
  return (
    <label className="place">
      <span className="sr">Project</span>
      <select value={here.id} onChange={(event) => go(event.target.value)}>
        {places.map((place) => (
          <option key={place.id} value={place.id}>
            {place.name}
          </option>
        ))}
        {more && <option disabled>there are more projects than are listed</option>}
      </select>
    </label>
  );
}

/** Names of things that only one project has, and of what was open. */
const OF_ONE_PLACE = ["subject", "allocation", "target", "actor_id", "step", "member", "entry"];

/** What of an address means the same in another place. */
export function keptIn(there: Pick<Place, "isPlatform">, search: Record<string, unknown>): Record<string, unknown> {
  const gone = there.isPlatform ? OF_ONE_PLACE : [...OF_ONE_PLACE, "project_id"];
  return Object.fromEntries(Object.entries(search).filter(([name]) => !gone.includes(name)));
}
