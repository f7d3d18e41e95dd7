// Times and durations for reading. Durations keep two units at most: enough to act upon, and of a steady width.

const UNITS: [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1000, "s"],
];

export function duration(ms: number): string {
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  for (const [at, [size, unit]] of UNITS.entries()) {
    if (ms < size) continue;
    const whole = Math.floor(ms / size);
    const next = UNITS[at + 1];
    const rest = next ? Math.floor((ms - whole * size) / next[0]) : 0;
    return next && rest > 0 ? `${whole} ${unit} ${rest} ${next[1]}` : `${whole} ${unit}`;
  }
  return "0 s";
}

export function ago(time: string, now: number): string {
  const passed = now - Date.parse(time);
  if (passed < 1500) return "now";
  const [size, unit] = UNITS.find(([size]) => passed >= size) ?? [1000, "s"];
  return `${Math.floor(passed / size)} ${unit} ago`;
}

/** `in 3 s`, or that it is due. */
export function until(time: string, now: number): string {
  const left = Date.parse(time) - now;
  return left <= 0 ? "now" : `in ${duration(Math.ceil(left / 1000) * 1000)}`;
}

export function clock(time: string | number): string {
  return new Date(time).toLocaleTimeString("en-GB", { hour12: false });
}

export function dayAndTime(time: string): string {
  const date = new Date(time);
  const day = date.toLocaleDateString("en-GB", { day: "2-digit", month: "short" });
  return `${day} ${clock(time)}`;
}
