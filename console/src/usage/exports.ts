// Usage for other programs: a table for spreadsheets, and the command that tells the same.
import type { UsageSum } from "../api/types";
import { type By, unitsOf } from "./sums";

/** A line per sum; each unit that occurs has a column. */
export function asCsv(sums: UsageSum[], by: By): string {
  const units = unitsOf(sums);
  const head = ["window_start", "window_end", by, ...units, "amount_minor", "currency", "rated"];
  const lines = sums.map((sum) => [
    sum.window_start,
    sum.window_end,
    sum[by],
    ...units.map((unit) => sum.quantities[unit]),
    sum.amount_minor,
    sum.currency,
    sum.rated,
  ]);
  return [head, ...lines].map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}

/** Quoted where needed. What a spreadsheet would take for a formula is kept from being one. */
function cell(value: string | number | boolean | null | undefined): string {
  if (typeof value !== "string") return value === null || value === undefined ? "" : String(value);
  const text = /^[=+\-@]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

interface Asked {
  window: string;
  by?: string;
  from: string;
  instance?: string;
}

export function usageCommand({ window, by, from, instance }: Asked): string {
  const words = ["gpuaas usage", instance, "--window", window, by && `--by ${by}`, "--from", from];
  return words.filter(Boolean).join(" ");
}
