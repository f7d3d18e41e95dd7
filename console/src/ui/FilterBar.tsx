// The filters of a list. Where there is little room they are away until they are asked for; how many are in use is told.
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";

interface Props {
  /** How many narrow the list now. */
  inUse: number;
  /** The search of the address without them. */
  cleared?: Record<string, string | true | undefined>;
  children: ReactNode;
}

export function FilterBar({ inUse, cleared = {}, children }: Props) {
  const [open, setOpen] = useState(false);
  return (
    <div className={open ? "filters open" : "filters"}>
      <button type="button" className="small-only" aria-expanded={open} onClick={() => setOpen(!open)}>
        {inUse > 0 ? `Filters (${inUse})` : "Filters"}
      </button>
      {children}
      {inUse > 0 && (
        <Link to="." search={cleared as Record<string, string | undefined>} className="clear">
          Clear
        </Link>
      )}
    </div>
  );
}
