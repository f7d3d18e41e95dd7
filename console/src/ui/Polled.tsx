// Whether a list that is asked for again and again still is: how often, or since when it was not.
import { clock } from "../time";
import { useNow } from "./now";

interface Props {
  list: { dataUpdatedAt: number; failureCount: number; isError: boolean; fetchStatus: string };
  every: number;
}

/** An answer may be late by so many turns before the list counts as old. */
const PATIENCE = 3;

export function Polled({ list, every }: Props) {
  const now = useNow(1000);
  const { dataUpdatedAt, failureCount, isError, fetchStatus } = list;
  if (dataUpdatedAt === 0) return null;
  const failing = isError || failureCount > 0 || fetchStatus === "paused";
  const fresh = !failing && now - dataUpdatedAt < PATIENCE * every;
  return (
    <span className={fresh ? "live" : "live tone-hold"} role="status">
      <span className={fresh ? "pulse" : "pulse still"} aria-hidden="true" />
      {fresh ? `renewed every ${every / 1000} s` : `not renewed since ${clock(dataUpdatedAt)}`}
    </span>
  );
}
