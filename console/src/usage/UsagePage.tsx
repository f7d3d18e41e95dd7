// What the project used, what it cost and what it may cost: charts, the budget, and the ledger behind them.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo, useState } from "react";
import { address, ROOT } from "../api/client";
import { since } from "../api/queries";
import { useEveryInstance } from "../api/whole";
import type { UsageView } from "../router";
import { usePlace } from "../shell/Shell";
import { Copy, curl } from "../ui/Copy";
import { FilterBar } from "../ui/FilterBar";
import { Choice } from "../ui/Filters";
import { Tabs } from "../ui/Tabs";
import { COST } from "./amounts";
import { BudgetPanel } from "./Budget";
import { asCsv, usageCommand } from "./exports";
import { LedgerTable } from "./Ledger";
import { Sums, useSums, type Wanted } from "./Sums";
import { type By, type Width, windowStart } from "./sums";

const WIDTHS: [Width, string][] = [
  ["hour", "hour"],
  ["day", "day"],
  ["month", "month"],
];
const SINCE: [string, string][] = [
  ["24h", "24 hours"],
  ["7d", "7 days"],
  ["30d", "30 days"],
  ["90d", "90 days"],
  ["365d", "a year"],
];
const USUALLY: Record<Width, string> = { hour: "24h", day: "30d", month: "365d" };
const BYS: [By, string][] = [
  ["app_slug", "app"],
  ["app_instance_id", "instance"],
  ["allocation_id", "allocation"],
  ["usage_source", "source"],
];

export function UsagePage() {
  const { view, ...filter } = useSearch({ from: "/$place/usage" });
  return (
    <>
      <div className="head">
        <h1>Usage</h1>
      </div>
      <p className="lead">
        What this project used and what it cost. Every charge is an entry of a ledger that nobody can change.
      </p>
      <BudgetPanel />
      <Tabs
        label="Usage or ledger"
        tabs={[
          { name: "Usage", search: { ...filter, view: undefined } },
          { name: "Ledger", search: { ...filter, view: "ledger" } },
        ]}
      />
      {view === "ledger" ? <LedgerTable /> : <Charts />}
    </>
  );
}

function Charts() {
  const place = usePlace();
  const search = useSearch({ from: "/$place/usage" });
  const navigate = useNavigate({ from: "/$place/usage" });
  const [shown, setShown] = useState({ units: [] as string[], of: COST });
  const tell = useCallback((units: string[], of: string) => setShown({ units, of }), []);
  const width = WIDTHS.find(([name]) => name === search.window)?.[0] ?? "day";
  const by = BYS.find(([name]) => name === search.by)?.[0] ?? "app_slug";
  const stretch = search.since ?? USUALLY[width];
  const from = useMemo(() => windowStart(Date.parse(since(stretch) ?? "") || Date.now(), width), [stretch, width]);
  const set = (change: Partial<UsageView>) => void navigate({ search: (before) => ({ ...before, ...change }) });
  const names = useNames(by);
  const inUse = ["window", "since", "by", "of"].filter((name) => search[name as keyof UsageView]).length;
  const query = { project_id: place.id, window: width, from: new Date(from).toISOString(), group_by: by };
  return (
    <>
      <FilterBar inUse={inUse}>
        <Choice
          label="By the"
          value={width}
          options={WIDTHS}
          onChange={(window) => set({ window, since: undefined })}
          always
        />
        <Choice label="Since" value={stretch} options={SINCE} onChange={(since) => set({ since })} always />
        <Choice label="Told apart by" value={by} options={BYS} onChange={(by) => set({ by })} always />
        <Choice
          label="Of"
          value={shown.of}
          options={[[COST, "cost"], ...shown.units.map((unit): [string, string] => [unit, unit.replaceAll("_", " ")])]}
          onChange={(of) => set({ of })}
          always
        />
        <span className="spring" />
        <div className="offers">
          <Download wanted={{ width, from, by, of: undefined }} />
          <Copy text={usageCommand({ window: width, by, from: query.from })} label="Copy as CLI" />
          <Copy text={curl("GET", address("/billing/usage", query).slice(ROOT.length))} label="Copy as curl" />
        </div>
      </FilterBar>
      <Sums width={width} from={from} by={by} of={search.of} name={names} onUnits={tell} />
    </>
  );
}

/** Instances by the names they have now; what is gone keeps the end of its id. */
function useNames(by: By): (group: string) => string {
  const place = usePlace();
  const instances = useEveryInstance(place, by === "app_instance_id").data?.items;
  return useMemo(() => {
    const names = new Map((instances ?? []).map((instance) => [instance.id, instance.display_name]));
    const words: Record<string, string> = { allocation: "allocations", app_runtime: "apps" };
    return (group: string) => {
      if (by === "app_instance_id") return names.get(group) ?? group.slice(-12);
      return by === "allocation_id" ? group.slice(-12) : (words[group] ?? group);
    };
  }, [instances, by]);
}

/** What is drawn, for a spreadsheet. */
function Download({ wanted }: { wanted: Wanted }) {
  const sums = useSums(usePlace(), wanted).data?.items ?? [];
  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([asCsv(sums, wanted.by)], { type: "text/csv" }));
    link.download = "usage.csv";
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <button type="button" disabled={sums.length === 0} onClick={download}>
      Download CSV
    </button>
  );
}
