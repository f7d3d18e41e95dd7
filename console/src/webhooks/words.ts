// A webhook in words.
import type { Webhook } from "../api/types";
import { counted } from "../runtime";

const REASONS: Record<NonNullable<Webhook["disabled_reason"]>, string> = {
  by_request: "somebody disabled it",
  gone: "the receiver said that it is gone for good",
  failing: "it took nothing for days",
};

export function disabledBecause(reason: NonNullable<Webhook["disabled_reason"]>): string {
  return REASONS[reason];
}

export function wanted({ event_types }: Webhook): string {
  if (event_types.length === 0) return "every type";
  return event_types.length <= 2 ? event_types.join(", ") : counted(event_types.length, "type");
}
