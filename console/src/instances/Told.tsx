// What was told of an instance, newest first.
import { address, ROOT } from "../api/client";
import { eventsOf, useInstanceEvents } from "../api/queries";
import type { Instance } from "../api/types";
import { EventTable } from "../events/EventTable";
import { usePlace } from "../shell/Shell";
import { Copy, curl } from "../ui/Copy";
import { Empty } from "../ui/Feedback";
import { Listed } from "../ui/Listed";

export function Told({ instance }: { instance: Instance }) {
  const place = usePlace();
  const events = useInstanceEvents(place, instance.id);
  const path = address(`${place.path}/events`, eventsOf(instance.id)).slice(ROOT.length);
  return (
    <section aria-label="Events">
      <div className="head">
        <span className="quiet">What the project was told of this instance; its own reports are among it.</span>
        <span className="spring" />
        <Copy text={curl("GET", path)} label="Copy as curl" />
      </div>
      <Listed
        list={events}
        what="events"
        empty={<Empty title="Nothing was told yet">The first event comes with the request itself.</Empty>}
      >
        {(items) => <EventTable events={items} ofOne />}
      </Listed>
    </section>
  );
}
