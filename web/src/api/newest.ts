// Messages that came, or were finished, stand at the end of a conversation. So only its newest page is asked for again,
// however many were read: each page is fixed by where the one after it begins.
import type { InfiniteData } from "@tanstack/react-query";
import type { Schemas } from "./client";

type List = Schemas["MessageList"];

/** The pages that were read, newest first, with a newest one that was just read; null when the two do not meet. */
export function withNewest<P>(known: InfiniteData<List, P>, newest: List): InfiniteData<List, P> | null {
  const [before, ...rest] = known.pages;
  const first = newest.data[0];
  if (before === undefined) return null;
  if (first === undefined || rest.length === 0) return { ...known, pages: [newest, ...rest] };
  const from = before.data.findIndex(({ message_id }) => message_id === first.message_id);
  if (from < 0) return null;
  const { older_cursor, next_cursor, has_more } = before;
  return { ...known, pages: [{ ...newest, data: [...before.data.slice(0, from), ...newest.data], older_cursor, next_cursor, has_more }, ...rest] };
}
