// What the project was told, newest first, as it happens. The same events go to webhooks and to `gpuaas events`.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { address, ROOT } from "../api/client";
import { since } from "../api/queries";
import { type CloudEvent, EVENT_TYPES } from "../api/types";
import { usePlace } from "../shell/Shell";
import { Copy, curl } from "../ui/Copy";
import { Empty, Loading, Problem } from "../ui/Feedback";
import { FilterBar } from "../ui/FilterBar";
import { Choice, SINCE, Written } from "../ui/Filters";
import { FollowingWord } from "../ui/Following";
import { useRowKeys } from "../ui/rows";
import { useStream } from "../ui/stream";
import { EventTable } from "./EventTable";

const MOST = 1000;
const USUALLY = "24h";

export function EventsPage() {
  const place = usePlace();
  const filter = useSearch({ from: "/$place/events" });
  const navigate = useNavigate({ from: "/$place/events" });
  // Reckoned once: a stream that asked for another minute every minute would begin anew as often.
  const begin = useMemo(() => since(filter.since ?? USUALLY), [filter.since]);
  const path = address(`${place.path}/events`, { ...filter, since: begin }).slice(ROOT.length);
  const { items, state, error } = useStream<CloudEvent>({ path, event: "event", most: MOST, resumes: true });
  const set = (name: string) => (value: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, [name]: value }) });
  const inUse = Object.keys(filter).length;
  useRowKeys("button.row-open");
  return (
    <>
      <div className="head">
        <h1>Events</h1>
        <span className="spring" />
        <FollowingWord state={state} />
        <Copy text="gpuaas events -f" label="Copy as CLI" />
        <Copy text={curl("GET", path)} label="Copy as curl" />
      </div>
      <p className="lead">What the project was told, in one order without gaps. Webhooks get the same events.</p>
      <FilterBar inUse={inUse}>
        <Choice label="Type" value={filter.type} options={EVENT_TYPES.map(asItIs)} onChange={set("type")} />
        <Written label="About" value={filter.subject} onChange={set("subject")} placeholder="any, by id" />
        <Written label="Correlation id" value={filter.correlation_id} onChange={set("correlation_id")} />
        <Choice label="Since" value={filter.since ?? USUALLY} options={SINCE} onChange={set("since")} always />
      </FilterBar>
      {error ? <Problem error={error} /> : null}
      {items.length > 0 && <EventTable events={items.toReversed()} />}
      {items.length === 0 &&
        !error &&
        (state === "connecting" ? <Loading what="events" /> : <None filtered={inUse > 0} />)}
    </>
  );
}

const asItIs = (type: string): [string, string] => [type, type];

function None({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No event matches these filters">Take one away, or choose a longer time.</Empty>;
  return (
    <Empty title="Nothing was told in the last 24 hours">
      Deploy or change something and it appears here, or choose a longer time.
    </Empty>
  );
}
