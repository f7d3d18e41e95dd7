// Said where a list is used as a whole and was longer than anybody should wait for.
import type { Whole } from "../api/everyPage";

export function NotAll({ of, what }: { of: Whole<unknown> | undefined; what: string }) {
  if (!of?.more) return null;
  return (
    <span className="not-all" role="note">
      There are more {what} than the first {of.items.length.toLocaleString("en")}, and only these are counted here.
    </span>
  );
}
