// Who did what to what, or was refused. The log cannot be changed; this page only narrows the view.
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Fragment, useState } from "react";
import { useAudit } from "../api/queries";
import type { AuditEntry } from "../api/types";
import { Json } from "../run/Json";
import { usePlace } from "../shell/Shell";
import { dayAndTime } from "../time";
import { Empty, Loading, Problem } from "../ui/Feedback";
import { Choice, SINCE, Written } from "../ui/Filters";
import { More } from "../ui/More";
import { StateWord } from "../ui/State";

export function AuditPage() {
  const place = usePlace();
  const filter = useSearch({ from: "/$place/audit" });
  const navigate = useNavigate({ from: "/$place/audit" });
  const entries = useAudit(place, filter);
  const [open, setOpen] = useState<string | null>(null);
  const set = (name: string) => (value: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, [name]: value }) });
  return (
    <>
      <div className="head">
        <h1>Audit</h1>
      </div>
      <div className="filters">
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
        {Object.keys(filter).length > 0 && (
          <Link to="." search={{}} className="clear">
            Clear
          </Link>
        )}
      </div>
      {entries.error && <Problem error={entries.error} again={() => void entries.refetch()} />}
      {entries.isPending && !entries.error && <Loading what="the log" />}
      {entries.data?.length === 0 && (
        <Empty title="Nothing was told yet">Changes and refusals appear here as they happen.</Empty>
      )}
      {entries.data && entries.data.length > 0 && (
        <div className="scroll">
          <table className="list">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">Result</th>
                <th scope="col">Action</th>
                <th scope="col">Target</th>
                <th scope="col">Who</th>
                <th scope="col">Correlation id</th>
              </tr>
            </thead>
            <tbody>
              {entries.data.map((entry) => (
                <Entry
                  key={entry.id}
                  entry={entry}
                  open={open === entry.id}
                  onToggle={() => setOpen(open === entry.id ? null : entry.id)}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <More {...entries} />
    </>
  );
}

function Entry({ entry, open, onToggle }: { entry: AuditEntry; open: boolean; onToggle: () => void }) {
  const place = usePlace();
  return (
    <Fragment>
      <tr className={entry.result === "denied" ? "edge-bad" : ""}>
        <td className="nowrap">{dayAndTime(entry.at)}</td>
        <td>
          <StateWord state={entry.result} />
          {entry.code && <span className="subject">{entry.code}</span>}
        </td>
        <td>
          <button type="button" className="linklike" aria-expanded={open} onClick={onToggle}>
            {entry.action}
          </button>
        </td>
        <td className="id clip">{entry.target}</td>
        <td>
          {entry.actor.role ?? entry.actor.type ?? "nobody yet"}{" "}
          <span className="id">{entry.actor.id?.slice(-12)}</span>
        </td>
        <td className="id clip">
          <Link to="/$place/runs" params={{ place: place.id }} search={{ correlation_id: entry.correlation_id }}>
            {entry.correlation_id}
          </Link>
        </td>
      </tr>
      {open && (
        <tr className="detail">
          <td colSpan={6}>
            {entry.reason && <p>“{entry.reason}”</p>}
            <p className="quiet">
              from {entry.ip ?? "an unknown address"} by {entry.user_agent ?? "an unnamed program"}
            </p>
            <div className="io">
              <Json title="Before" value={entry.before} />
              <Json title="After" value={entry.after} />
            </div>
          </td>
        </tr>
      )}
    </Fragment>
  );
}
