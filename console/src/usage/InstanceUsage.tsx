// What one instance used, by the hour of the last day or the day of the last month.
import { useState } from "react";
import { address, ROOT } from "../api/client";
import { usePlace } from "../shell/Shell";
import { Copy, curl } from "../ui/Copy";
import { Choice } from "../ui/Filters";
import { usageCommand } from "./exports";
import { Sums } from "./Sums";
import { type Width, windowStart } from "./sums";

const STRETCHES: [Width, string][] = [
  ["hour", "24 hours"],
  ["day", "30 days"],
];
const LENGTH: Record<Width, number> = { hour: 86_400_000, day: 30 * 86_400_000, month: 365 * 86_400_000 };

export function InstanceUsage({ instance }: { instance: string }) {
  const place = usePlace();
  const [width, setWidth] = useState<Width>("hour");
  const [now] = useState(() => Date.now());
  const from = windowStart(now - LENGTH[width], width);
  const query = { project_id: place.id, app_instance_id: instance, window: width, from: new Date(from).toISOString() };
  return (
    <section aria-label="Usage">
      <div className="filters open">
        <Choice
          label="The last"
          value={width}
          options={STRETCHES}
          onChange={(chosen) => setWidth(chosen === "day" ? "day" : "hour")}
          always
        />
        <span className="spring" />
        <Copy text={usageCommand({ window: width, from: query.from, instance })} label="Copy as CLI" />
        <Copy text={curl("GET", address("/billing/usage", query).slice(ROOT.length))} label="Copy as curl" />
      </div>
      <Sums
        width={width}
        from={from}
        by="usage_source"
        of={undefined}
        instance={instance}
        name={() => "this instance"}
      />
    </section>
  );
}
