// What was told of an instance, newest first.
import { useInstanceEvents } from "../api/queries";
import { EventTable } from "../events/EventTable";
import { Copy, curl } from "../ui/Copy";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";

export function Told({ path }: { path: string }) {
  const events = useInstanceEvents(path);
  return (
    <section aria-label="Events">
      <div className="head">
        <span className="quiet">What the project was told of this instance; its own reports are among it.</span>
        <span className="spring" />
        <Copy text={curl("GET", `${path}/events`)} label="Copy as curl" />
      </div>
      <Listed
        list={events}
        what="events"
        empty={<Empty title="Nothing was told yet">The first event comes with the request itself.</Empty>}
      >
        {(items) => <EventTable events={items.toReversed()} ofOne />}
      </Listed>
    </section>
  );
}
