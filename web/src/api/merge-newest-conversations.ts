// Conversations move to the front of the list when they change, so only its newest page is fetched again, however many
// pages were read.
import type { InfiniteData } from "@tanstack/react-query";
import type { Conversation, Schemas } from "./client";
import { indexOf } from "./conversation-pages";

type List = Schemas["ListConversation"];

/** Reports whether a comes after b in the order of the service, or may do so: their times are rounded. */
function isAfter(a: Conversation, b: Conversation): boolean {
  const [pinnedA, pinnedB] = [a.pinned_at !== null, b.pinned_at !== null];
  if (pinnedA !== pinnedB) return pinnedB;
  return Date.parse(a.last_activity_at) <= Date.parse(b.last_activity_at);
}

/**
 * Merges a newly fetched newest page into the pages read so far. Returns null if conversations may be missing between
 * them. Conversations before the end of the newest page that are not on it were deleted, and are removed. Older pages
 * from which nothing moved stay the same objects.
 */
export function mergeNewestConversations<P>(known: InfiniteData<List, P>, newest: List): InfiniteData<List, P> | null {
  const [first, ...rest] = known.pages;
  const last = newest.data.at(-1);
  if (first === undefined) return null;
  if (rest.length === 0 || last === undefined || newest.next_cursor === null)
    return { pages: [newest], pageParams: known.pageParams.slice(0, 1) };
  const end = known.pages.findIndex(
    (page) => indexOf(page.data).get(last.conversation_id)?.last_activity_at === last.last_activity_at,
  );
  if (end < 0) return null;
  const fetched = new Set(newest.data.map((one) => one.conversation_id));
  const before = known.pages.slice(0, end + 1);
  const moved = [...fetched].filter((id) => !before.some((page) => indexOf(page.data).has(id)));
  const retained = (page: List, at: number): readonly Conversation[] => {
    if (at <= end) return page.data.filter((one) => !fetched.has(one.conversation_id) && isAfter(one, last));
    return moved.some((id) => indexOf(page.data).has(id))
      ? page.data.filter((one) => !fetched.has(one.conversation_id))
      : page.data;
  };
  return {
    ...known,
    pages: known.pages.map((page, at) => {
      const data = retained(page, at);
      if (at === 0) return { ...page, data: [...newest.data, ...data] };
      return data === page.data ? page : { ...page, data: [...data] };
    }),
  };
}
