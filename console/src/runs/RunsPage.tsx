// Runs, newest first, as they are now. What wants a person has a tab of its own.
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { type RunFilter, useRuns } from "../api/queries";
import { RUN_STATUSES, STUCK_CODES } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { Empty, Loading, Problem } from "../ui/Feedback";
import { Choice, SINCE, Written } from "../ui/Filters";
import { More } from "../ui/More";
import { RunTable } from "./RunTable";
import { Signatures } from "./Signatures";

export function RunsPage() {
  const place = usePlace();
  const filter = useSearch({ from: "/$place/runs" });
  const navigate = useNavigate({ from: "/$place/runs" });
  const runs = useRuns(place, filter);
  const set = (change: Partial<RunFilter>) => void navigate({ search: (before) => ({ ...before, ...change }) });
  const stuck = filter.view === "stuck";
  const filtered = Object.entries(filter).some(([name, value]) => name !== "view" && value);
  return (
    <>
      <div className="head">
        <h1>Runs</h1>
        <nav className="tabs" aria-label="Which runs">
          <Link to="." search={(before) => ({ ...before, view: undefined })} aria-current={stuck ? undefined : "page"}>
            All
          </Link>
          <Link
            to="."
            search={(before) => ({ ...before, view: "stuck" as const })}
            aria-current={stuck ? "page" : undefined}
          >
            Want a person
          </Link>
        </nav>
        <span className="spring" />
        <span className="live">
          <span className="pulse" aria-hidden="true" /> live
        </span>
      </div>
      <div className="filters">
        <Choice
          label="State"
          value={filter.status}
          options={RUN_STATUSES}
          onChange={(status) => set({ status: status as RunFilter["status"] })}
        />
        <Written
          label="Kind"
          value={filter.kind}
          onChange={(kind) => set({ kind })}
          placeholder="any, e.g. demo.tour"
        />
        <Choice label="Cause" value={filter.cause} options={STUCK_CODES} onChange={(cause) => set({ cause })} />
        <Written
          label="Correlation id"
          value={filter.correlation_id}
          onChange={(correlation_id) => set({ correlation_id })}
        />
        <Choice label="Since" value={filter.since} options={SINCE} onChange={(since) => set({ since })} />
        {filtered && (
          <Link to="." search={{ view: filter.view }} className="clear">
            Clear
          </Link>
        )}
      </div>
      {runs.error && <Problem error={runs.error} again={() => void runs.refetch()} />}
      {runs.isPending && !runs.error && <Loading what="runs" />}
      {runs.data && stuck && place.isPlatform && may(place, "workflows.operate") && <Signatures runs={runs.data} />}
      {runs.data && runs.data.length > 0 && <RunTable runs={runs.data} />}
      {runs.data?.length === 0 && <NoRuns stuck={stuck} filtered={filtered} />}
      <More {...runs} />
    </>
  );
}

function NoRuns({ stuck, filtered }: { stuck: boolean; filtered: boolean }) {
  if (filtered) return <Empty title="No run matches these filters">Take one away, or choose a longer time.</Empty>;
  if (stuck) return <Empty title="Nothing wants a person">Runs that are paused, stuck or overdue would be here.</Empty>;
  return <Empty title="No runs yet">A run begins with every deployment, upgrade and other lifecycle action.</Empty>;
}
