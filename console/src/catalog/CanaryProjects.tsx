// The projects that are in a canary by name, whatever its percentage. Those that are in stay in until it is over.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { places } from "../api/queries";

interface Props {
  inAlready: string[];
  chosen: string[];
  onChange: (projects: string[]) => void;
}

/** From here on, finding one by eye takes too long. */
const MANY = 12;

export function CanaryProjects({ inAlready, chosen, onChange }: Props) {
  const projects = (useQuery(places).data?.places ?? []).filter((place) => !place.isPlatform);
  const [wanted, setWanted] = useState("");
  const shown = projects.filter((project) => project.name.includes(wanted.trim().toLowerCase()));
  const turn = (id: string) => onChange(chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]);
  return (
    <fieldset className="types">
      <legend>
        And these projects, whatever the share{" "}
        <span className="quiet">{chosen.length > 0 ? `${chosen.length} chosen` : "none chosen"}</span>
      </legend>
      {projects.length > MANY && (
        <label className="field">
          <span className="sr">Only projects with</span>
          <input
            type="search"
            value={wanted}
            placeholder="Only projects with…"
            onChange={(event) => setWanted(event.target.value)}
          />
        </label>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
      <div className="types-list" tabIndex={0}>
        {shown.map(({ id, name }) => (
          <label key={id} className="check">
            <input
              type="checkbox"
              checked={inAlready.includes(id) || chosen.includes(id)}
              disabled={inAlready.includes(id)}
              onChange={() => turn(id)}
            />
            {name}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
