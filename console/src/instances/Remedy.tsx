// What to do about a status reason: the words of the documentation, fetched when they are needed.
import { useQuery } from "@tanstack/react-query";
import type { StatusReason } from "../api/types";

const PAGES = import.meta.glob<string>("../../../docs/errors/reasons/*.md", { query: "?raw", import: "default" });

export function Remedy({ reason }: { reason: StatusReason }) {
  const page = useQuery({
    queryKey: ["remedy", reason],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => (await PAGES[`../../../docs/errors/reasons/${reason}.md`]?.()) ?? "",
  });
  const words = page.data?.split("## What to do\n")[1]?.trim();
  return words ? <p>{plain(words)}</p> : null;
}

/** Marks of code are left out; a page of advice has no others. */
const plain = (text: string) => text.replaceAll("\n", " ").replaceAll("`", "");
