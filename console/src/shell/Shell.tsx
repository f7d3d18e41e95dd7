// The frame around every page: where one is, what there is, who one is. One row on a wide screen's left, one at a small
// screen's bottom.
import { useSuspenseQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useParams } from "@tanstack/react-router";
import { createContext, useContext, useMemo, useState } from "react";
import { signOut } from "../api/client";
import { places } from "../api/queries";
import type { Permission } from "../api/types";
import { may, type Place } from "../place";
import { Find } from "./Find";
import { KeyMap, useKeys } from "./KeyMap";
import { ThemeButton } from "./ThemeButton";

const Here = createContext<Place | null>(null);

/** The place that the address names. */
export function usePlace(): Place {
  const place = useContext(Here);
  if (!place) throw new Error("a page outside any place");
  return place;
}

interface Page {
  to: "/$place/runs" | "/$place/schedules" | "/$place/audit" | "/$place/service-accounts" | "/$place/members";
  name: string;
  key: string;
  needs: Permission;
  where: "platform" | "project" | "both";
}

export const PAGES: Page[] = [
  { to: "/$place/runs", name: "Runs", key: "r", needs: "workflows.read", where: "both" },
  { to: "/$place/schedules", name: "Schedules", key: "s", needs: "workflows.read", where: "platform" },
  { to: "/$place/audit", name: "Audit", key: "a", needs: "audit.read", where: "both" },
  {
    to: "/$place/service-accounts",
    name: "Service accounts",
    key: "c",
    needs: "iam.service_account.read",
    where: "project",
  },
  { to: "/$place/members", name: "Members", key: "m", needs: "iam.member.manage", where: "project" },
];

function pagesIn(place: Place): Page[] {
  const here = place.isPlatform ? "platform" : "project";
  return PAGES.filter((page) => may(place, page.needs) && (page.where === "both" || page.where === here));
}

export function Shell() {
  const known = useSuspenseQuery(places).data;
  const id = useParams({ from: "/$place" }).place;
  const place = useMemo(() => known.places.find((one) => one.id === id), [known, id]);
  const navigate = useNavigate();
  const [keysShown, showKeys] = useState(false);
  const pages = place ? pagesIn(place) : [];
  useKeys({
    "?": () => showKeys(true),
    "/": () => document.getElementById("find")?.focus(),
    ...Object.fromEntries(
      pages.map((page) => [`g ${page.key}`, () => void navigate({ to: page.to, params: { place: id } })]),
    ),
  });
  if (!place) return <Nowhere />;
  return (
    <Here value={place}>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <header className="top">
        <Link to="/$place/runs" params={{ place: id }} className="brand" aria-label="GPUaaS console, runs">
          <svg viewBox="0 0 26 18" aria-hidden="true">
            <rect x="0" y="1" width="11" height="4" rx="1" className="brand-a" />
            <rect x="7" y="7" width="13" height="4" rx="1" className="brand-b" />
            <rect x="17" y="13" width="9" height="4" rx="1" className="brand-c" />
          </svg>
          <span>gpuaas</span>
        </Link>
        <PlaceSwitch places={known.places} here={place} />
        <Find place={place} />
        <span className="spring" />
        <ThemeButton />
        <button
          type="button"
          className="plain wide-only"
          onClick={() => showKeys(true)}
          aria-label="Keyboard shortcuts"
        >
          ?
        </button>
        <Person name={known.me.name} />
      </header>
      <nav className="rail" aria-label="Pages">
        {pages.map((page) => (
          <Link key={page.to} to={page.to} params={{ place: id }} activeProps={{ "aria-current": "page" }}>
            {page.name}
          </Link>
        ))}
      </nav>
      <main id="content" tabIndex={-1}>
        <Outlet />
      </main>
      {keysShown && <KeyMap pages={pages} onClose={() => showKeys(false)} />}
    </Here>
  );
}

function PlaceSwitch({ places, here }: { places: Place[]; here: Place }) {
  const navigate = useNavigate();
  return (
    <label className="place">
      <span className="sr">Project</span>
      <select
        value={here.id}
        onChange={(event) => void navigate({ to: "/$place/runs", params: { place: event.target.value } })}
      >
        {places.map((place) => (
          <option key={place.id} value={place.id}>
            {place.name}
          </option>
        ))}
      </select>
    </label>
  );
}

function Person({ name }: { name: string }) {
  const leave = async () => {
    await signOut();
    location.assign("/console/signed-out");
  };
  return (
    <span className="person">
      <span className="wide-only">{name}</span>
      <button type="button" className="plain" onClick={leave}>
        Sign out
      </button>
    </span>
  );
}

export function Nowhere() {
  return (
    <main className="alone">
      <h1>There is nothing for you here</h1>
      <p>
        The address names no place you may look at. If you have just been given access,{" "}
        <a href="/console/">start again</a>; otherwise ask somebody who manages a project to add you as a member.
      </p>
    </main>
  );
}
