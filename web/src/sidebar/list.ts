// The query of the conversation list, with the polling of the sidebar.
import { infiniteQueryOptions } from "@tanstack/react-query";
import { conversationsQuery } from "../api/queries";

/**
 * Polling intervals in milliseconds: while a turn is live, while none is, and if more than manyPages pages are loaded,
 * because each poll fetches all of them.
 */
const liveInterval = 4_000;
const idleInterval = 15_000;
const manyPagesInterval = 60_000;
const manyPages = 4;

/** Polls often while a turn is live, even if the page is hidden, so that the title of its tab can show the end. */
export const sidebarQuery = infiniteQueryOptions({
  ...conversationsQuery,
  refetchInterval: (query) => {
    const pages = query.state.data?.pages ?? [];
    const runs = pages.some((page) => page.data.some((one) => one.live_turn_id !== null));
    if (document.hidden && !runs) return false;
    return pages.length > manyPages ? manyPagesInterval : runs ? liveInterval : idleInterval;
  },
  refetchIntervalInBackground: true,
});
