// The way to anything by its name: a correlation id, or a run's own id.
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useRef, useState } from "react";
import { get } from "../api/client";
import type { Place } from "../place";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Correlation ids that nobody chose look as ids of runs do, so the server is asked which it is. */
async function isTraced(id: string): Promise<boolean> {
  const told = await get(`/trace/${id}`, { limit: 1 }).catch(() => null);
  return told !== null;
}

export function Find({ place }: { place: Place }) {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const find = async (event: FormEvent) => {
    event.preventDefault();
    const wanted = text.trim();
    if (!wanted) return;
    setText("");
    // The keys of the page that is found work at once.
    field.current?.blur();
    if (UUID.test(wanted) && !(await isTraced(wanted))) {
      void navigate({ to: "/$place/runs/$run", params: { place: place.id, run: wanted } });
    } else {
      void navigate({ to: "/$place/trace", params: { place: place.id }, search: { correlation_id: wanted } });
    }
  };
  return (
    <search className="find">
      <form onSubmit={find}>
        <label className="sr" htmlFor="find">
          Find by correlation id or run id
        </label>
        <input
          id="find"
          ref={field}
          type="search"
          value={text}
          placeholder="Correlation id or run id"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
        <span className="hint" aria-hidden="true">
          /
        </span>
      </form>
    </search>
  );
}
