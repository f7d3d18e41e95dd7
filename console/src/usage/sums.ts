// From sums of the API to what a chart draws: every window of the stretch, also those in which nothing was used, and in
// each a part for every group. The biggest groups have a colour of their own; the others share one.
import type { UsageSum } from "../api/types";
import { COST } from "./amounts";

export type Width = "hour" | "day" | "month";
export type By = "app_slug" | "app_instance_id" | "allocation_id" | "usage_source";

export interface Group {
  id: string;
  total: number;
}

export interface Column {
  start: number;
  total: number;
  /** By the order of the groups. */
  parts: number[];
}

export interface Drawn {
  groups: Group[];
  columns: Column[];
  most: number;
  total: number;
}

/** More colours than this nobody tells apart. */
export const COLOURS = 6;
export const OTHERS = "others";

export function unitsOf(sums: UsageSum[]): string[] {
  return [...new Set(sums.flatMap((sum) => Object.keys(sum.quantities)))].sort();
}

export function amountOf(sum: UsageSum, of: string): number {
  return of === COST ? sum.amount_minor : (sum.quantities[of] ?? 0);
}

export function groupOf(sum: UsageSum, by: By): string {
  return sum[by] ?? "";
}

export function drawn(sums: UsageSum[], of: string, by: By, width: Width, from: number, now: number): Drawn {
  const groups = groupsOf(sums, of, by);
  const place = new Map(groups.map((group, at) => [group.id, at]));
  const rest = place.get(OTHERS) ?? groups.length - 1;
  const columns = windows(from, now, width).map((start): Column => ({ start, total: 0, parts: groups.map(() => 0) }));
  const byStart = new Map(columns.map((column) => [column.start, column]));
  for (const sum of sums) {
    const column = byStart.get(Date.parse(sum.window_start));
    const amount = amountOf(sum, of);
    if (!column || amount === 0) continue;
    const at = place.get(groupOf(sum, by)) ?? rest;
    column.parts[at] = (column.parts[at] ?? 0) + amount;
    column.total += amount;
  }
  const most = Math.max(0, ...columns.map((column) => column.total));
  return { groups, columns, most, total: columns.reduce((sum, column) => sum + column.total, 0) };
}

function groupsOf(sums: UsageSum[], of: string, by: By): Group[] {
  const totals = new Map<string, number>();
  for (const sum of sums) {
    const amount = amountOf(sum, of);
    if (amount !== 0) totals.set(groupOf(sum, by), (totals.get(groupOf(sum, by)) ?? 0) + amount);
  }
  const all = [...totals].map(([id, total]) => ({ id, total })).sort((one, other) => other.total - one.total);
  if (all.length <= COLOURS) return all;
  const rest = all.slice(COLOURS - 1).reduce((sum, group) => sum + group.total, 0);
  return [...all.slice(0, COLOURS - 1), { id: OTHERS, total: rest }];
}

/** The beginnings of all windows, in UTC as the API has them. */
export function windows(from: number, to: number, width: Width): number[] {
  const starts: number[] = [];
  for (let at = windowStart(from, width); at <= to && starts.length < 1000; at = next(at, width)) starts.push(at);
  return starts;
}

export function windowStart(moment: number, width: Width): number {
  const date = new Date(moment);
  if (width === "month") return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
  const size = width === "hour" ? 3_600_000 : 86_400_000;
  return Math.floor(moment / size) * size;
}

function next(start: number, width: Width): number {
  const date = new Date(start);
  if (width === "month") return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
  return start + (width === "hour" ? 3_600_000 : 86_400_000);
}

/** A round number not below the highest column, so that the lines of the chart are round too. */
export function ceiling(most: number): number {
  if (most <= 0) return 1;
  const size = 10 ** Math.floor(Math.log10(most));
  return ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * size >= most) ?? 10) * size;
}
