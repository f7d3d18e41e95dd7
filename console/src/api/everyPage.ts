// A list that is used as a whole: every page of it, up to a bound that whoever shows it must tell.
import { get } from "./client";
import type { Page } from "./types";

export interface Whole<T> {
  items: T[];
  /** There are more than were taken. */
  more: boolean;
}

/** More than this nobody looks through. */
export const MOST = 2000;
/** The longest page that the API gives. */
const PAGE = 200;

type Query = Record<string, string | number | undefined>;

export async function everyPage<T>(path: string, query: Query, signal?: AbortSignal, most = MOST): Promise<Whole<T>> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await get<Page<T>>(path, { ...query, limit: PAGE, cursor }, signal);
    items.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor && items.length < most);
  return { items, more: cursor !== undefined };
}
