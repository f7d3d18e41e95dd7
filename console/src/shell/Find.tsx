// The way to anything by its name: a correlation id, or a run's own id.
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { Place } from "../place";

const RUN_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function Find({ place }: { place: Place }) {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  const find = (event: FormEvent) => {
    event.preventDefault();
    const wanted = text.trim();
    if (!wanted) return;
    setText("");
    if (RUN_ID.test(wanted) && wanted[14] === "7") {
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
