// What would happen, before it does: what it costs, the steps, what each touches, and where it would stand.
import type { ChangeStrategy, InstancePlan, PlanStep } from "../api/types";
import { duration } from "../time";
import { Facts } from "../ui/Facts";
import { type Column, Table } from "../ui/Table";
import { Matrix } from "./Matrix";
import { priceFacts } from "./Price";

const STRATEGIES: Record<ChangeStrategy, string> = {
  side_by_side: "the old version serves until the new one is healthy",
  stop_then_start: "both do not fit: the old version is stopped first, and started again if the new one fails",
};

/** `counted` is the unit in which the app itself measures, where that is known. */
export function PlanPanel({ plan, counted }: { plan: InstancePlan; counted?: string }) {
  return (
    <section className="panel" aria-label="Plan">
      <header>
        <h2>Plan</h2>
        <code>{plan.workflow_kind}</code>
      </header>
      {plan.changes_nothing && <p>{unchanged(plan)}: nothing would change.</p>}
      <Facts
        facts={[
          ["How", plan.changes_nothing ? null : plan.strategy && STRATEGIES[plan.strategy]],
          ["Usually takes", usual(plan.expected_seconds)],
          ...priceFacts(plan, counted),
        ]}
      />
      <Table label="Steps" columns={STEPS} rows={plan.steps} id={(step) => step.name} />
      {plan.placement.length > 0 && (
        <>
          <h3 className="over">Placement</h3>
          <Matrix rows={plan.placement} />
        </>
      )}
    </section>
  );
}

const unchanged = (plan: InstancePlan) =>
  plan.action === "decommission" ? "It has ended already" : "The same version and digest serve already";

/** Nothing where the app has no history yet. */
const usual = (seconds: number | null | undefined) => (typeof seconds === "number" ? duration(seconds * 1000) : null);

const STEPS: Column<PlanStep>[] = [
  { head: "Step", cell: (step) => <strong>{step.name}</strong>, title: true },
  { head: "What it touches", cell: (step) => step.touches, className: "why" },
  { head: "On failure", cell: (step) => (step.undo ? "undone" : "stays"), className: "nowrap" },
  {
    head: "Usually",
    cell: (step) => usual(step.expected_seconds),
    className: "number nowrap",
  },
];
