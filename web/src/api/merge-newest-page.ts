// Messages that arrive or complete are at the end of a conversation, so only its newest page is fetched again, however
// many pages were read. Each older page ends where the next newer page starts, so it does not change.
import type { InfiniteData } from "@tanstack/react-query";
import type { Schemas } from "./client";

type List = Schemas["MessageList"];

/** Merges a newly fetched newest page into the pages read so far, newest first; null if the pages do not overlap. */
export function mergeNewestPage<P>(known: InfiniteData<List, P>, newest: List): InfiniteData<List, P> | null {
  const [before, ...rest] = known.pages;
  const first = newest.data[0];
  if (before === undefined) return null;
  if (first === undefined || rest.length === 0) return { ...known, pages: [newest, ...rest] };
  const from = before.data.findIndex(({ message_id }) => message_id === first.message_id);
  if (from < 0) return null;
  const { older_cursor, next_cursor, has_more } = before;
  return {
    ...known,
    pages: [
      { ...newest, data: [...before.data.slice(0, from), ...newest.data], older_cursor, next_cursor, has_more },
      ...rest,
    ],
  };
}
