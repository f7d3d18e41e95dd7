// What an hour would cost, before anything is made. What the allocation costs is told apart: it is paid whatever stands on it.
import type { ReactNode } from "react";
import type { InstancePlan } from "../api/types";
import { money, unitName } from "../usage/amounts";

type Price = NonNullable<InstancePlan["price_per_hour"]>;

/** As facts of a plan. What the app counts itself, by the unit `counted`, comes on top and is not known before. */
export function priceFacts({ action, price_per_hour: price }: InstancePlan, counted?: string): [string, ReactNode][] {
  if (action === "decommission") return [];
  if (!price) return [["An hour costs", "nothing: the platform has no prices yet"]];
  return [
    ["An hour costs", <Hour key="price" price={price} />],
    ["Its allocation costs", `${money(price.allocation_amount_minor, price.currency)}, whatever stands on it`],
    ["On top", counted && `what the app counts: ${unitName(counted).toLowerCase()}`],
  ];
}

function Hour({ price }: { price: Price }) {
  const parts = price.lines.map((line) => `${unitName(line.usage_unit)} ${money(line.amount_minor, price.currency)}`);
  return (
    <>
      <strong>{money(price.amount_minor, price.currency)}</strong>
      {parts.length > 1 && <span className="quiet"> · {parts.join(" · ")}</span>}
    </>
  );
}
