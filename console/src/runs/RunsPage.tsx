// Runs, newest first, as they are now. What needs attention has a tab of its own.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { OFTEN, type RunFilter, since, useRuns } from "../api/queries";
import { RUN_STATUSES, STUCK_CODES } from "../api/types";
import { may } from "../place";
import { usePlace } from "../shell/Shell";
import { Empty } from "../ui/Feedback";
import { FilterBar } from "../ui/FilterBar";
import { Choice, SINCE, Written } from "../ui/Filters";
import { Listed } from "../ui/Listed";
import { Polled } from "../ui/Polled";
import { ProjectChoice } from "../ui/Project";
import { Tabs } from "../ui/Tabs";
import { RunTable } from "./RunTable";
import { Signatures } from "./Signatures";

export function RunsPage() {
  const place = usePlace();
  const filter = useSearch({ from: "/$place/runs" });
  const navigate = useNavigate({ from: "/$place/runs" });
  const runs = useRuns(place, filter);
  const set = (change: Partial<RunFilter>) => void navigate({ search: (before) => ({ ...before, ...change }) });
  const failed = filter.view === "failed";
  const inUse = Object.entries(filter).filter(([name, value]) => name !== "view" && value).length;
  return (
    <>
      <div className="head">
        <h1>Runs</h1>
        <span className="spring" />
        <Polled list={runs} every={OFTEN} />
      </div>
      <p className="lead">Every lifecycle action is a durable run of steps. Open one to see each step, try and undo.</p>
      <Tabs
        label="Which runs"
        tabs={[
          { name: "All runs", search: { ...filter, view: undefined } },
          { name: "Need attention", search: { ...filter, view: "stuck" } },
          { name: "Failed", search: { ...filter, view: "failed", status: undefined, cause: undefined } },
        ]}
      />
      <FilterBar inUse={inUse} cleared={{ view: filter.view }}>
        {!failed && (
          <Choice
            label="State"
            value={filter.status}
            options={RUN_STATUSES}
            onChange={(status) => set({ status: status as RunFilter["status"] })}
          />
        )}
        <Written
          label="Kind"
          value={filter.kind}
          onChange={(kind) => set({ kind })}
          placeholder="any, e.g. demo.tour"
        />
        {!failed && (
          <Choice label="Cause" value={filter.cause} options={STUCK_CODES} onChange={(cause) => set({ cause })} />
        )}
        <Written
          label="Correlation id"
          value={filter.correlation_id}
          onChange={(correlation_id) => set({ correlation_id })}
        />
        {place.isPlatform && <ProjectChoice value={filter.project_id} onChange={(project_id) => set({ project_id })} />}
        <Choice label="Since" value={filter.since} options={SINCE} onChange={(since) => set({ since })} />
      </FilterBar>
      {runs.data && filter.view && place.isPlatform && may(place, "workflows.operate") && (
        <Signatures runs={runs.data} narrowed={{ project_id: filter.project_id, since: since(filter.since) }} />
      )}
      <Listed list={runs} what="runs" empty={<NoRuns view={filter.view} filtered={inUse > 0} />}>
        {(items) => <RunTable runs={items} />}
      </Listed>
    </>
  );
}

function NoRuns({ view, filtered }: { view: RunFilter["view"]; filtered: boolean }) {
  if (filtered) return <Empty title="No run matches these filters">Take one away, or choose a longer time.</Empty>;
  if (view === "failed")
    return <Empty title="Nothing failed">A run that failed stays here until it is tried again.</Empty>;
  if (view === "stuck")
    return <Empty title="Nothing needs attention">Runs that are paused, stuck or overdue appear here.</Empty>;
  return <Empty title="No runs yet">A run starts with every deployment, upgrade and other lifecycle action.</Empty>;
}
