// A stream that comes back. The browser itself returns to one that broke, but gives up for good on an answer that is none:
// a session that ended, too many requests, a server that is about to stop. Then whoever listens asks why, and it is opened
// once more after a pause that grows while nothing changes.
import { ApiError } from "../api/client";

export interface Listener {
  /** Listens to a stream; there is another one each time it is opened once more. */
  listen: (source: EventSource) => void;
  onLive: () => void;
  onLost: () => void;
  /** Asks the same in another way, to know why the stream was refused; null where it would not be now. */
  why: () => Promise<unknown>;
  /** `again` is whether the reason passes by itself. */
  onRefused: (why: unknown, again: boolean) => void;
}

const SHORTEST_MS = 1000;
const LONGEST_MS = 30_000;

/** Answers what ends it. */
export function keepOpen(url: string, { listen, onLive, onLost, why, onRefused }: Listener): () => void {
  let source: EventSource;
  let pause = SHORTEST_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let over = false;

  const open = () => {
    source = new EventSource(url);
    source.onopen = () => {
      pause = SHORTEST_MS;
      onLive();
    };
    source.onerror = () => {
      onLost();
      if (source.readyState === EventSource.CLOSED) void refused();
    };
    listen(source);
  };
  const refused = async () => {
    const reason = await why();
    const again = reason === null || passes(reason);
    if (over) return;
    onRefused(reason, again);
    if (!again) return;
    timer = setTimeout(open, pause);
    pause = Math.min(LONGEST_MS, pause * 2);
  };
  open();
  return () => {
    over = true;
    clearTimeout(timer);
    source.close();
  };
}

/** What passes by itself: no answer, a state that is not there yet, too many requests, a server in trouble. */
function passes(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status === 0 || error.status === 409 || error.status === 429 || error.status >= 500;
}
