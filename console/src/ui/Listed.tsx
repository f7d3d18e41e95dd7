// A list on its way: loading, refused, empty or there, with the rest behind a button.
import type { ReactNode } from "react";
import { Loading, Problem } from "./Feedback";

interface Props<T> {
  list: {
    data: T[] | undefined;
    error: unknown;
    /** What is shown still answers the question before. */
    isPlaceholderData: boolean;
    refetch: () => unknown;
    hasNextPage: boolean;
    isFetchingNextPage: boolean;
    fetchNextPage: () => unknown;
  };
  what: string;
  /** What stands there when nothing does. */
  empty: ReactNode;
  children: (items: T[]) => ReactNode;
}

export function Listed<T>({ list, what, empty, children }: Props<T>) {
  const { data, error } = list;
  return (
    <>
      {error ? <Problem error={error} again={() => void list.refetch()} /> : null}
      {!data && !error && <Loading what={what} />}
      {data && (
        <div className={list.isPlaceholderData ? "stale" : undefined} aria-busy={list.isPlaceholderData}>
          {data.length > 0 ? children(data) : empty}
        </div>
      )}
      {list.hasNextPage && (
        <button
          type="button"
          className="more"
          disabled={list.isFetchingNextPage}
          onClick={() => void list.fetchNextPage()}
        >
          {list.isFetchingNextPage ? "Loading…" : "Show more"}
        </button>
      )}
    </>
  );
}
