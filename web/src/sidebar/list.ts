// The list of conversations as the sidebar asks for it.
import { infiniteQueryOptions } from "@tanstack/react-query";
import type { Conversation } from "../api/client";
import { conversationsQuery } from "../api/queries";

/** Milliseconds between looks: while something runs, while nothing does, and when so much is loaded that a look is dear. */
const soon = 4_000;
const calm = 15_000;
const rarely = 60_000;
const dear = 4; // pages

/** Looks often while answers run, also when nobody looks at the page, so that its tab can tell of the end. */
export const sidebarQuery = infiniteQueryOptions({
  ...conversationsQuery,
  refetchInterval: (query) => {
    const pages = query.state.data?.pages ?? [];
    const runs = pages.some((page) => page.data.some((one) => one.live_turn_id !== null));
    if (document.hidden && !runs) return false;
    return pages.length > dear ? rarely : runs ? soon : calm;
  },
  refetchIntervalInBackground: true,
});

/** All that is loaded, each once: an item that changed while the list was paged may come twice. */
export function loaded(pages: readonly { data: readonly Conversation[] }[]): Conversation[] {
  const found = new Map<string, Conversation>();
  for (const page of pages) for (const one of page.data) if (!found.has(one.conversation_id)) found.set(one.conversation_id, one);
  return [...found.values()];
}
