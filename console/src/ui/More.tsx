// The end of a list that may go on.
interface Props {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
}

export function More({ hasNextPage, isFetchingNextPage, fetchNextPage }: Props) {
  if (!hasNextPage) return null;
  return (
    <button type="button" className="more" disabled={isFetchingNextPage} onClick={() => fetchNextPage()}>
      {isFetchingNextPage ? "Loading…" : "Show older"}
    </button>
  );
}
