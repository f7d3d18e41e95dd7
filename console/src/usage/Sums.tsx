// What was used over a stretch of time: a chart of cost or of one unit, and the same in numbers.
import { useEffect, useMemo } from "react";
import type { UsageSum } from "../api/types";
import { useUsage } from "../api/whole";
import type { Place } from "../place";
import { usePlace } from "../shell/Shell";
import { Empty, Loading, Problem } from "../ui/Feedback";
import { NotAll } from "../ui/NotAll";
import { type Column, Table } from "../ui/Table";
import { COST, money, quantity, unitName } from "./amounts";
import { Chart } from "./Chart";
import { type By, drawn, groupOf, OTHERS, unitsOf, type Width } from "./sums";

export interface Wanted {
  width: Width;
  from: number;
  by: By;
  /** Cost or a unit; without one, whichever says something. */
  of: string | undefined;
  instance?: string;
}

interface Props extends Wanted {
  name: (group: string) => string;
  /** Told of the units there are, and which one is drawn. */
  onUnits?: (units: string[], drawn: string) => void;
}

export function useSums(place: Place, { width, from, by, instance }: Wanted) {
  return useUsage(place, {
    window: width,
    from: new Date(from).toISOString(),
    group_by: by,
    app_instance_id: instance,
  });
}

export function Sums({ name, onUnits, ...wanted }: Props) {
  const usage = useSums(usePlace(), wanted);
  const sums = usage.data?.items;
  const units = useMemo(() => unitsOf(sums ?? []), [sums]);
  const of = chosen(sums ?? [], units, wanted.of);
  useEffect(() => onUnits?.(units, of), [onUnits, units, of]);
  if (usage.error && !sums) return <Problem error={usage.error} again={() => void usage.refetch()} />;
  if (!sums) return <Loading what="usage" />;
  if (sums.length === 0) {
    return (
      <Empty title="Nothing was used in this time">
        Allocations count from the moment they are active, instances while they run. Choose a longer time to look back.
      </Empty>
    );
  }
  return (
    <>
      <NotAll of={usage.data} what="sums" />
      <Shown {...wanted} sums={sums} units={units} name={name} of={of} />
    </>
  );
}

interface Shown extends Wanted {
  of: string;
  sums: UsageSum[];
  units: string[];
  name: (group: string) => string;
}

function Shown({ sums, units, name, width, from, by, of }: Shown) {
  const currency = sums.find((sum) => sum.currency)?.currency ?? null;
  const chart = drawn(sums, of, by, width, from, Date.now());
  const words = (amount: number) => (of === COST ? money(amount, currency) : quantity(amount, of));
  const nameless = by === "allocation_id" ? "no allocation" : "allocations";
  const named = (group: string) => (group === OTHERS ? "everything else" : group === "" ? nameless : name(group));
  return (
    <>
      <section className="panel" aria-label="Chart">
        <header>
          <h2>{of === COST ? "Cost" : unitName(of)}</h2>
          <span className="quiet">by the {width}, UTC</span>
        </header>
        <Chart {...{ drawn: chart, width, of, currency, words }} name={named} />
      </section>
      <Totals sums={sums} units={units} by={by} currency={currency} name={named} />
    </>
  );
}

/** What was asked for, if there is any; else cost where anything has a price, else the unit that most of it is of. */
function chosen(sums: UsageSum[], units: string[], asked: string | undefined): string {
  if (asked && (asked === COST || units.includes(asked))) return asked;
  if (sums.some((sum) => sum.amount_minor !== 0)) return COST;
  const count = (unit: string) => sums.filter((sum) => unit in sum.quantities).length;
  return [...units].sort((one, other) => count(other) - count(one))[0] ?? COST;
}

interface Total {
  id: string;
  amount: number;
  rated: boolean;
  quantities: Record<string, number>;
}

function Totals({ sums, units, by, currency, name }: Omit<Shown, keyof Wanted> & { by: By; currency: string | null }) {
  const totals = new Map<string, Total>();
  for (const sum of sums) {
    const id = groupOf(sum, by);
    const total = totals.get(id) ?? { id, amount: 0, rated: true, quantities: {} };
    total.amount += sum.amount_minor;
    total.rated &&= sum.rated;
    for (const [unit, amount] of Object.entries(sum.quantities)) {
      total.quantities[unit] = (total.quantities[unit] ?? 0) + amount;
    }
    totals.set(id, total);
  }
  const rows = [...totals.values()].sort((one, other) => other.amount - one.amount);
  const columns: Column<Total>[] = [
    { head: HEADS[by], cell: (total) => <strong>{name(total.id)}</strong>, title: true },
    ...units.map(
      (unit): Column<Total> => ({
        head: unitName(unit),
        cell: (total) => (unit in total.quantities ? quantity(total.quantities[unit] ?? 0, unit) : null),
        className: "number nowrap",
      }),
    ),
    { head: "Cost", cell: (total) => money(total.amount, currency), className: "number nowrap" },
    { head: "Charged", cell: (total) => (total.rated ? "all of it" : "not all yet"), className: "quiet nowrap" },
  ];
  return <Table label="Usage" columns={columns} rows={rows} id={(total) => total.id} />;
}

const HEADS: Record<By, string> = {
  app_slug: "App",
  app_instance_id: "Instance",
  allocation_id: "Allocation",
  usage_source: "Source",
};
