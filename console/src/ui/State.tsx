// The states of everything that has one, as shape, word and colour together, so that none of the three is needed alone.
import type {
  AllocationStatus,
  DeliveryStatus,
  InstanceStatus,
  Lifecycle,
  NodeStatus,
  RunStatus,
  StepState,
  SubmissionStatus,
  Trust,
  VersionStatus,
} from "../api/types";

type OfApps = SubmissionStatus | InstanceStatus | VersionStatus | Lifecycle | Trust;
type Word =
  | RunStatus
  | StepState
  | OfApps
  | NodeStatus
  | AllocationStatus
  | DeliveryStatus
  | "disabled"
  | "deleted"
  | "denied";

const GLYPHS: Record<string, string> = {
  dot: "M8 5a3 3 0 1 0 0 6a3 3 0 0 0 0-6z",
  ring: "M8 3.2a4.8 4.8 0 1 0 0 9.6a4.8 4.8 0 0 0 0-9.6zm0 1.6a3.2 3.2 0 1 1 0 6.4a3.2 3.2 0 0 1 0-6.4z",
  half: "M8 3a5 5 0 1 0 0 10a5 5 0 0 0 0-10zm0 1.5v7a3.5 3.5 0 0 1 0-7z",
  bars: "M4.5 3.5h2.4v9H4.5zm4.6 0h2.4v9H9.1z",
  check: "M6.6 12.2 2.9 8.5l1.3-1.3 2.4 2.4 5.2-5.2 1.3 1.3z",
  cross: "M4.4 3.2 8 6.8l3.6-3.6 1.2 1.2L9.2 8l3.6 3.6-1.2 1.2L8 9.2l-3.6 3.6-1.2-1.2L6.8 8 3.2 4.4z",
  back: "M6.6 3.2v2.6h2.6a3.9 3.9 0 0 1 0 7.8H5v-1.7h4.2a2.2 2.2 0 0 0 0-4.4H6.6v2.6L2.4 6.7z",
  bang: "M8 1.6 15 14H1zM7.2 6v4h1.6V6zm0 5v1.5h1.6V11z",
  dash: "M3.5 7.1h9v1.8h-9z",
  play: "M5 3.2 12.6 8 5 12.8z",
};

const LOOK: Record<Word, [keyof typeof GLYPHS, string]> = {
  queued: ["ring", "quiet"],
  pending: ["ring", "quiet"],
  running: ["play", "run"],
  waiting: ["half", "wait"],
  paused: ["bars", "hold"],
  compensating: ["back", "undo"],
  compensated: ["back", "undo"],
  succeeded: ["check", "good"],
  failed: ["cross", "bad"],
  denied: ["cross", "bad"],
  ambiguous: ["bang", "hold"],
  skipped: ["dash", "quiet"],
  cancelled: ["dash", "quiet"],
  stuck: ["bang", "bad"],
  active: ["dot", "good"],
  disabled: ["bars", "hold"],
  deleted: ["dash", "quiet"],
  requested: ["ring", "quiet"],
  deploying: ["play", "run"],
  upgrading: ["play", "run"],
  rolling_back: ["back", "undo"],
  decommissioning: ["back", "undo"],
  decommissioned: ["dash", "quiet"],
  draft: ["ring", "quiet"],
  staged: ["half", "wait"],
  canary: ["half", "hold"],
  deprecated: ["bars", "hold"],
  retired: ["dash", "quiet"],
  delivered: ["check", "good"],
  published: ["ring", "quiet"],
  promoted: ["check", "good"],
  unverified: ["ring", "hold"],
  verified: ["check", "good"],
  failed_verification: ["cross", "bad"],
  revoked: ["cross", "bad"],
  approved: ["check", "good"],
  rejected: ["cross", "bad"],
  superseded: ["dash", "quiet"],
  enrolling: ["ring", "quiet"],
  drained: ["bars", "hold"],
  unavailable: ["bang", "bad"],
  provisioning: ["play", "run"],
  releasing: ["back", "undo"],
  released: ["dash", "quiet"],
  release_failed: ["bang", "bad"],
};

export function StateMark({ state }: { state: Word }) {
  const [glyph, tone] = LOOK[state];
  return (
    <svg className={`mark tone-${tone}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={GLYPHS[glyph]} fillRule="evenodd" />
    </svg>
  );
}

export function StateWord({ state }: { state: Word }) {
  return (
    <span className={`state tone-${LOOK[state][1]}`}>
      <StateMark state={state} />
      {state.replaceAll("_", " ")}
    </span>
  );
}

/** A run that is running is under way; an instance that is running is where it should be. */
export function InstanceState({ status }: { status: InstanceStatus }) {
  if (status !== "running") return <StateWord state={status} />;
  return (
    <span className="state tone-good">
      <StateMark state="active" />
      running
    </span>
  );
}

export function toneOf(state: Word): string {
  return LOOK[state][1];
}
