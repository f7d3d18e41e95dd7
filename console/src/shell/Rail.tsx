// The pages, in groups. On a small screen the rail is away until the menu button calls it.
import { Link } from "@tanstack/react-router";
import type { Place } from "../place";
import { type Group, Sign } from "./pages";

interface Props {
  place: Place;
  groups: Group[];
  open: boolean;
  onClose: () => void;
}

export function Rail({ place, groups, open, onClose }: Props) {
  return (
    <>
      {open && <button type="button" className="veil" aria-label="Close the menu" onClick={onClose} />}
      <nav className={open ? "rail open" : "rail"} id="rail" aria-label="Pages">
        <Link to="/$place/runs" params={{ place: place.id }} className="brand" aria-label="GPUaaS console, runs">
          <svg viewBox="0 0 26 18" aria-hidden="true">
            <rect x="0" y="1" width="11" height="4" rx="1" className="brand-a" />
            <rect x="7" y="7" width="13" height="4" rx="1" className="brand-b" />
            <rect x="17" y="13" width="9" height="4" rx="1" className="brand-c" />
          </svg>
          <span>gpuaas</span>
        </Link>
        {groups.map((group) => (
          <section key={group.name} aria-label={group.name}>
            <h2>{group.name}</h2>
            <ul>
              {group.pages.map((page) => (
                <li key={page.path}>
                  <Link
                    to={`/$place/${page.path}`}
                    params={{ place: place.id }}
                    activeProps={{ "aria-current": "page" }}
                    onClick={onClose}
                  >
                    <Sign of={page.path} />
                    {page.name}
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </nav>
    </>
  );
}
