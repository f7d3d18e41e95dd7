// Events, a line each; a line opens to the event as every transport sends it.
import { useState } from "react";
import type { CloudEvent } from "../api/types";
import { Json } from "../run/Json";
import { dayAndTime } from "../time";
import { type Column, Table } from "../ui/Table";
import { TraceLink } from "../ui/TraceLink";
import { money } from "../usage/amounts";

interface Props {
  events: CloudEvent[];
  /** Whether all of them are about one thing, so that it need not be said again. */
  ofOne?: boolean;
}

export function EventTable({ events, ofOne = false }: Props) {
  const [open, setOpen] = useState<string | null>(null);
  const about: Column<CloudEvent> = {
    head: "About",
    cell: (event) => <span title={event.subject}>{event.subject.slice(-12)}</span>,
    className: "id nowrap",
  };
  const columns: Column<CloudEvent>[] = [
    {
      head: "Event",
      cell: (event) => (
        <button
          type="button"
          className="linklike row-open"
          aria-expanded={open === event.id}
          onClick={() => setOpen(open === event.id ? null : event.id)}
        >
          {event.type}
        </button>
      ),
      title: true,
    },
    { head: "What", cell: (event) => told(event.data), className: "why" },
    { head: "When", cell: (event) => dayAndTime(event.time), className: "nowrap" },
    ...(ofOne ? [] : [about]),
    { head: "Correlation id", cell: (event) => <TraceLink id={event.correlationid} />, className: "id clip" },
  ];
  return (
    <Table
      label="Events"
      columns={columns}
      rows={events}
      id={(event) => event.id}
      edge={(event) => (/failed|lost|stuck|halted|exceeded|revoked/.test(event.type) ? "bad" : undefined)}
      detail={(event) => open === event.id && <Json title="The event" value={event} />}
    />
  );
}

/** The few words that tell most, whatever the event is about: its type says the rest. */
function told(data: unknown): string | null {
  if (typeof data !== "object" || data === null) return null;
  const { display_name, app_slug, version, status_reason, message, event_type, balance_minor, currency } = data as Told;
  const app = app_slug && version ? `${app_slug} ${version}` : app_slug;
  const parts = [display_name, app, event_type, status_reason?.message ?? message];
  const words = parts.filter((part) => typeof part === "string");
  return words.length > 0
    ? words.join(" · ")
    : typeof balance_minor === "number"
      ? `balance ${money(balance_minor, currency)}`
      : null;
}

interface Told {
  display_name?: string;
  app_slug?: string;
  version?: string;
  status_reason?: { message?: string } | null;
  message?: string;
  event_type?: string;
  balance_minor?: number;
  currency?: string;
}
