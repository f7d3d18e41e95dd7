// A run as it changes: the stream tells what differs, and what the page knows is brought up to date. A stream that breaks
// or is refused for a while comes back by itself; a run that has ended has none.
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ROOT } from "../api/client";
import { runOptions } from "../api/queries";
import type { Run, RunDetail, Step } from "../api/types";
import type { Place } from "../place";
import { keepOpen } from "../ui/keepOpen";
import { stepId } from "../waterfall/layout";

export type Following = "connecting" | "live" | "lost" | "refused" | "ended";

export function useFollow(place: Place, id: string, ended: boolean): Following {
  const client = useQueryClient();
  const [state, setState] = useState<Following>("connecting");
  useEffect(() => {
    if (ended) return;
    return keepOpen(`${ROOT}${place.path}/workflows/${id}/stream`, {
      listen: (source) => listen(source, client, place, id),
      onLive: () => setState("live"),
      onLost: () => setState("lost"),
      // The run itself: its answer is news, and its refusal says why. That of an ended session leads to the sign-in.
      why: () => client.fetchQuery({ ...runOptions(place, id), staleTime: 0 }).then(nothing, same),
      onRefused: (_, again) => setState(again ? "lost" : "refused"),
    });
  }, [client, place, id, ended]);
  return ended ? "ended" : state;
}

const nothing = () => null;
const same = (error: unknown) => error;

function listen(source: EventSource, client: QueryClient, place: Place, id: string) {
  const steps: Step[] = [];
  source.addEventListener("snapshot", (event) => {
    client.setQueryData(runOptions(place, id).queryKey, JSON.parse(event.data) as RunDetail);
  });
  source.addEventListener("step", (event) => {
    steps.push(JSON.parse(event.data) as Step);
  });
  source.addEventListener("run", (event) => {
    const run = JSON.parse(event.data) as Run;
    update(client, place, id, run, steps.splice(0));
    if (run.finished_at) source.close();
  });
}

/** Steps that are no longer pending are told by the stream; those that a finished run never reached are read again. */
function update(client: QueryClient, place: Place, id: string, run: Run, changed: Step[]) {
  const key = runOptions(place, id).queryKey;
  client.setQueryData(key, (known) => {
    if (!known) return known;
    const fresh = new Map(changed.map((step) => [stepId(step), step]));
    const steps = known.steps.map((step) => fresh.get(stepId(step)) ?? step);
    const names = new Set(known.steps.map(stepId));
    const added = changed.filter((step) => !names.has(stepId(step)));
    const inOrder = [...steps, ...added].sort((one, other) => (one.seq ?? Infinity) - (other.seq ?? Infinity));
    return { ...known, ...run, steps: inOrder };
  });
  if (run.finished_at) void client.invalidateQueries({ queryKey: key });
}
