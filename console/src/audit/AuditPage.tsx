// Who did what to what, or was refused. The log cannot be changed; this page only narrows the view.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useAudit } from "../api/queries";
import type { AuditEntry } from "../api/types";
import { Json } from "../run/Json";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Empty } from "../ui/Feedback";
import { FilterBar } from "../ui/FilterBar";
import { Choice, SINCE, Written } from "../ui/Filters";
import { Listed } from "../ui/Listed";
import { StateWord } from "../ui/State";
import { type Column, Table } from "../ui/Table";
import { TraceLink } from "../ui/TraceLink";

export function AuditPage() {
  const place = usePlace();
  const filter = useSearch({ from: "/$place/audit" });
  const navigate = useNavigate({ from: "/$place/audit" });
  const entries = useAudit(place, filter);
  const [open, setOpen] = useState<string | null>(null);
  const set = (name: string) => (value: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, [name]: value }) });
  const columns: Column<AuditEntry>[] = [
    {
      head: "Action",
      cell: (entry) => <Action entry={entry} open={open === entry.id} onOpen={setOpen} />,
      title: true,
    },
    { head: "Result", cell: (entry) => <Result entry={entry} /> },
    { head: "When", cell: (entry) => dayAndTime(entry.at), className: "nowrap" },
    { head: "Target", cell: (entry) => entry.target, className: "id clip" },
    { head: "Who", cell: (entry) => <Who entry={entry} />, className: "nowrap" },
    { head: "Correlation id", cell: (entry) => <TraceLink id={entry.correlation_id} />, className: "id clip" },
  ];
  return (
    <>
      <div className="head">
        <h1>Audit</h1>
      </div>
      <p className="lead">Who did what, and what was refused. The log cannot be changed by anybody.</p>
      <FilterBar inUse={Object.keys(filter).length}>
        <Choice label="Result" value={filter.result} options={["succeeded", "denied"]} onChange={set("result")} />
        <Written
          label="Action"
          value={filter.action}
          onChange={set("action")}
          placeholder="any, e.g. cancel_workflow"
        />
        <Written label="Target" value={filter.target} onChange={set("target")} placeholder="kind:id" />
        <Written label="Correlation id" value={filter.correlation_id} onChange={set("correlation_id")} />
        <Choice label="Since" value={filter.since} options={SINCE} onChange={set("since")} />
      </FilterBar>
      <Listed
        list={entries}
        what="the log"
        empty={<Empty title="Nothing to show">Changes and refusals appear here as they happen.</Empty>}
      >
        {(items) => (
          <Table
            label="Audit"
            columns={columns}
            rows={items}
            id={(entry) => entry.id}
            edge={(entry) => (entry.result === "denied" ? "bad" : undefined)}
            detail={(entry) => open === entry.id && <Detail entry={entry} />}
          />
        )}
      </Listed>
    </>
  );
}

interface Opening {
  entry: AuditEntry;
  open: boolean;
  onOpen: (id: string | null) => void;
}

function Action({ entry, open, onOpen }: Opening) {
  return (
    <button type="button" className="linklike" aria-expanded={open} onClick={() => onOpen(open ? null : entry.id)}>
      {entry.action.replaceAll("_", " ")}
    </button>
  );
}

function Result({ entry }: { entry: AuditEntry }) {
  return (
    <>
      <StateWord state={entry.result} />
      {entry.code && <span className="subject">{entry.code}</span>}
    </>
  );
}

function Who({ entry }: { entry: AuditEntry }) {
  return (
    <>
      {entry.actor.role ?? entry.actor.type ?? "nobody yet"} <span className="id">{entry.actor.id?.slice(-12)}</span>
    </>
  );
}

function Detail({ entry }: { entry: AuditEntry }) {
  return (
    <>
      {entry.reason && <p>“{entry.reason}”</p>}
      <p className="quiet">
        from {entry.ip ?? "an unknown address"} by {entry.user_agent ?? "an unnamed program"}
      </p>
      <div className="io">
        <Json title="Before" value={entry.before} />
        <Json title="After" value={entry.after} />
      </div>
    </>
  );
}
