// The present moment, for whatever is drawn by it. Everything that ticks at one pace ticks together, and only while it is
// seen.
import { useEffect, useState } from "react";

interface Clock {
  told: Set<(now: number) => void>;
  timer: ReturnType<typeof setInterval>;
}

const clocks = new Map<number, Clock>();

export function useNow(every: number, live = true): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!live) return;
    setNow(Date.now());
    const clock = clocks.get(every) ?? started(every);
    clock.told.add(setNow);
    return () => {
      clock.told.delete(setNow);
      if (clock.told.size > 0) return;
      clearInterval(clock.timer);
      clocks.delete(every);
    };
  }, [every, live]);
  return now;
}

function started(every: number): Clock {
  const told: Clock["told"] = new Set();
  const timer = setInterval(() => {
    if (document.hidden) return;
    const now = Date.now();
    for (const tell of told) tell(now);
  }, every);
  const clock = { told, timer };
  clocks.set(every, clock);
  return clock;
}
