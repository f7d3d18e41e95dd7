// The frame around every page: where one is, what there is, who one is.
import { useSuspenseQuery } from "@tanstack/react-query";
import { Outlet, useLocation, useNavigate, useParams } from "@tanstack/react-router";
import { createContext, useContext, useMemo, useState } from "react";
import { signOut } from "../api/client";
import { places } from "../api/queries";
import type { Place } from "../place";
import { Find } from "./Find";
import { KeyMap, useKeys } from "./KeyMap";
import { NotHere } from "./NotHere";
import { PlaceSwitch } from "./PlaceSwitch";
import { groupsIn, pageAt } from "./pages";
import { Rail } from "./Rail";
import { ThemeButton } from "./ThemeButton";

const Here = createContext<Place | null>(null);

/** The place that the address names. */
export function usePlace(): Place {
  const place = useContext(Here);
  if (!place) throw new Error("a page outside any place");
  return place;
}

export function Shell() {
  const known = useSuspenseQuery(places).data;
  const id = useParams({ from: "/$place" }).place;
  const place = useMemo(() => known.places.find((one) => one.id === id), [known, id]);
  const groups = useMemo(() => (place ? groupsIn(place) : []), [place]);
  const navigate = useNavigate();
  const [keysShown, showKeys] = useState(false);
  const [menuOpen, openMenu] = useState(false);
  const pages = groups.flatMap((group) => group.pages);
  useKeys({
    "?": () => showKeys(true),
    "/": () => document.getElementById("find")?.focus(),
    ...Object.fromEntries(
      pages.map((page) => [
        `g ${page.key}`,
        () => void navigate({ to: `/$place/${page.path}`, params: { place: id } }),
      ]),
    ),
  });
  const section = useLocation({ select: ({ pathname }) => pathname.split("/")[2] });
  if (!place) return <Nowhere />;
  const page = pageAt(section);
  return (
    <Here value={place}>
      <title>{`${page?.name ?? "Console"} · ${place.name} · GPUaaS`}</title>
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <Rail place={place} groups={groups} open={menuOpen} onClose={() => openMenu(false)} />
      <header className="top">
        <button
          type="button"
          className="plain menu"
          aria-label="Menu"
          aria-expanded={menuOpen}
          aria-controls="rail"
          onClick={() => openMenu(!menuOpen)}
        >
          <svg viewBox="0 0 16 16" aria-hidden="true">
            <path d="M1 2.5h14v1.8H1zM1 7.1h14v1.8H1zM1 11.7h14v1.8H1z" />
          </svg>
        </button>
        <PlaceSwitch places={known.places} more={known.more} here={place} section={page} />
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
      <main id="content" tabIndex={-1}>
        {page && !pages.includes(page) ? <NotHere page={page} place={place} /> : <Outlet />}
      </main>
      {keysShown && <KeyMap pages={pages} onClose={() => showKeys(false)} />}
    </Here>
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
