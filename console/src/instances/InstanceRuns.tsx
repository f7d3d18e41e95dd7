// What was done to an instance: its runs, newest first, each with its steps behind a link.
import { useRuns } from "../api/queries";
import type { Instance } from "../api/types";
import { may } from "../place";
import { RunTable } from "../runs/RunTable";
import { usePlace } from "../shell/Shell";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";
import { TraceLink } from "../ui/TraceLink";

export function InstanceRuns({ instance }: { instance: Instance }) {
  const place = usePlace();
  const runs = useRuns(place, { subject: `app_instance:${instance.id}` });
  if (!may(place, "workflows.read")) return null;
  return (
    <section className="part" aria-label="Operations">
      <div className="head">
        <h2>Operations</h2>
        <span className="spring" />
        <TraceLink id={instance.correlation_id}>trace of the deployment</TraceLink>
      </div>
      <Listed list={runs} what="its runs" empty={<Empty title="No operation yet" />}>
        {(items) => <RunTable runs={items} ofOne />}
      </Listed>
    </section>
  );
}
