// Whether what is shown still follows the world.
import type { Following } from "./stream";

const WORDS: Record<Following, string> = {
  live: "live",
  connecting: "connecting",
  lost: "reconnecting",
  ended: "ended",
  paused: "paused",
};

export function FollowingWord({ state }: { state: Following }) {
  return (
    <span className={state === "live" ? "live" : "quiet"} role="status">
      {state === "live" && <span className="pulse" aria-hidden="true" />}
      {WORDS[state]}
    </span>
  );
}
