// What a server tells as it happens, kept while somebody looks. A stream that breaks comes back by itself; one that is
// refused says why, which the browser's own stream does not, and comes back where the reason passes.
import { useEffect, useState } from "react";
import { get, leaveIfSignedOut, ROOT } from "../api/client";
import { keepOpen } from "./keepOpen";

export type Following = "connecting" | "live" | "lost" | "ended" | "paused";

export interface Stream<T> {
  items: T[];
  state: Following;
  error: unknown;
}

interface Wanted {
  /** A path of the API with its query; null listens to nothing and keeps what was heard. */
  path: string | null;
  event: string;
  /** At most so many are kept, the newest. */
  most: number;
  /** Whether a stream that comes back goes on where it broke; otherwise it begins anew. */
  resumes: boolean;
}

/** Told one by one, shown together: a long past arrives in one breath. */
const TOGETHER_MS = 60;

export function useStream<T>({ path, event, most, resumes }: Wanted): Stream<T> {
  const [items, setItems] = useState<T[]>([]);
  const [state, setState] = useState<Following>("connecting");
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    if (path === null) {
      setState("paused");
      return;
    }
    let heard: T[] = [];
    let waiting: ReturnType<typeof setTimeout> | undefined;
    let anew = true;
    const show = () => {
      waiting = undefined;
      const [fresh, before] = [heard, anew];
      [heard, anew] = [[], false];
      setItems((known) => (before ? fresh : [...known, ...fresh]).slice(-most));
    };
    const soon = () => {
      waiting ??= setTimeout(show, TOGETHER_MS);
    };
    const begin = () => {
      [heard, anew] = [[], true];
      soon();
    };
    setState("connecting");
    setError(null);
    let opened = false;
    const close = keepOpen(ROOT + path, {
      listen: (source) => {
        opened = false;
        source.addEventListener("reset", begin);
        source.addEventListener(event, (message) => {
          heard.push(JSON.parse((message as MessageEvent<string>).data) as T);
          soon();
        });
      },
      onLive: () => {
        if (!opened || !resumes) begin();
        opened = true;
        setState("live");
        setError(null);
      },
      onLost: () => setState("lost"),
      why: () => reason(path),
      onRefused: (why, again) => {
        leaveIfSignedOut(why);
        setError(why);
        if (!again) setState("ended");
      },
    });
    return () => {
      clearTimeout(waiting);
      close();
    };
  }, [path, event, most, resumes]);
  return { items, state, error };
}

/** The same question once more, for the sake of the refusal; null where there is none any more. */
async function reason(path: string): Promise<unknown> {
  const asked = path.replace(/([?&])follow=true&?/, "$1").replace(/[?&]$/, "");
  return get(asked).then(
    () => null,
    (error: unknown) => error,
  );
}
