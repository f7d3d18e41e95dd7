// The present moment, for whatever is drawn by it. Everything that shows time ticks together, and only while it is seen.
import { useEffect, useState } from "react";

export function useNow(every: number, live = true): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!live) return;
    setNow(Date.now());
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, every);
    return () => clearInterval(timer);
  }, [every, live]);
  return now;
}
