// A project by its name, where those of all projects stand together.
import { useQuery } from "@tanstack/react-query";
import { places } from "../api/queries";
import { Choice } from "./Filters";

/** What the platform itself does belongs to none. */
const NOBODY = "00000000-0000-0000-0000-000000000000";

export function ProjectName({ id }: { id: string }) {
  const known = useQuery(places).data?.places.find((place) => place.id === id);
  if (id === NOBODY) return <span className="quiet">the platform</span>;
  return known ? known.name : <span className="id">{id.slice(-12)}</span>;
}

interface Props {
  value: string | undefined;
  onChange: (id: string | undefined) => void;
}

export function ProjectChoice({ value, onChange }: Props) {
  const known = useQuery(places).data?.places ?? [];
  const projects = known.filter((place) => !place.isPlatform).map((place): [string, string] => [place.id, place.name]);
  return <Choice label="Project" value={value} options={[...projects, [NOBODY, "the platform"]]} onChange={onChange} />;
}
