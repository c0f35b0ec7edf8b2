// Conversations move to the front of the list when they change, so polls fetch only its newest page, however many pages
// were read.
import type { InfiniteData } from "@tanstack/react-query";
import type { Conversation, Schemas } from "./client";

type List = Schemas["ListConversation"];

/** Reports whether a comes after b in the order of the service, or may do so: their times are rounded. */
function isAfter(a: Conversation, b: Conversation): boolean {
  const [pinnedA, pinnedB] = [a.pinned_at !== null, b.pinned_at !== null];
  if (pinnedA !== pinnedB) return pinnedB;
  return Date.parse(a.last_activity_at) <= Date.parse(b.last_activity_at);
}

/**
 * Merges a newly fetched newest page into the pages read so far. Returns null if conversations may be missing between
 * them. Conversations before the end of the newest page that are not on it were deleted, and are removed.
 */
export function mergeNewestConversations<P>(known: InfiniteData<List, P>, newest: List): InfiniteData<List, P> | null {
  const [first, ...rest] = known.pages;
  const last = newest.data.at(-1);
  if (first === undefined) return null;
  if (rest.length === 0 || last === undefined || newest.next_cursor === null)
    return { pages: [newest], pageParams: known.pageParams.slice(0, 1) };
  const isLast = (one: Conversation) =>
    one.conversation_id === last.conversation_id && one.last_activity_at === last.last_activity_at;
  if (!known.pages.some(({ data }) => data.some(isLast))) return null;
  const fetched = new Set(newest.data.map((one) => one.conversation_id));
  const retained = (data: readonly Conversation[]) =>
    data.filter((one) => !fetched.has(one.conversation_id) && isAfter(one, last));
  return {
    ...known,
    pages: [
      { ...first, data: [...newest.data, ...retained(first.data)] },
      ...rest.map((page) => ({ ...page, data: retained(page.data) })),
    ],
  };
}
