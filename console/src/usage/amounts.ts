// Money and quantities for reading. Money comes in minor units and is never a fraction of one; seconds read as hours.

export function digitsOf(currency: string): number {
  return new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
}

export function money(minor: number, currency: string | null | undefined): string {
  if (!currency) return minor === 0 ? "–" : String(minor);
  const digits = digitsOf(currency);
  return new Intl.NumberFormat("en", { style: "currency", currency }).format(minor / 10 ** digits);
}

/** What somebody wrote, in minor units; null if it is no amount. */
export function minorUnits(text: string, currency: string | null | undefined): number | null {
  const digits = currency ? digitsOf(currency) : 2;
  const match = /^(\d{1,10})(?:\.(\d+))?$/.exec(text.trim());
  if (!match || (match[2] ?? "").length > digits) return null;
  return Number(match[1]) * 10 ** digits + Number((match[2] ?? "").padEnd(digits, "0") || 0);
}

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** `gpu_seconds` are counted in seconds and read in hours. */
export function quantity(amount: number, unit: string): string {
  if (!unit.endsWith("_seconds")) return `${plain.format(amount)} ${unit.replaceAll("_", " ")}`;
  const of = unit.slice(0, -"_seconds".length);
  const named = of === "session" || of === "allocation" ? "" : `${of.toUpperCase()} `;
  return amount < 3600 ? `${plain.format(amount / 60)} ${named}min` : `${plain.format(amount / 3600)} ${named}h`;
}

/** `gpu_seconds` is told as time of it. */
export function unitName(unit: string): string {
  const words = unit.replace(/_seconds$/, " time").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A quantity or an amount for the side of a chart, where there is little room. */
export function onAxis(amount: number, unit: string, currency: string | null): string {
  if (unit === COST) {
    if (!currency) return short.format(amount);
    const major = amount / 10 ** digitsOf(currency);
    if (major < 1000) return money(Math.round(amount), currency);
    return new Intl.NumberFormat("en", { style: "currency", currency, notation: "compact" }).format(major);
  }
  return unit.endsWith("_seconds") ? `${short.format(amount / 3600)} h` : short.format(amount);
}

export const COST = "cost";
