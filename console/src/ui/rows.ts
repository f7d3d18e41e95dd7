// Walking a list by keys: `j` and `k` move the focus from row to row, so that Enter opens what is focused.
import { useKeys } from "../shell/KeyMap";

export function useRowKeys(selector: string) {
  const move = (by: 1 | -1) => {
    const rows = [...document.querySelectorAll<HTMLElement>(selector)];
    const at = rows.indexOf(document.activeElement as HTMLElement);
    const next = rows[at === -1 ? (by === 1 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
}
