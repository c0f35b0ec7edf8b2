// The list of conversations as the sidebar asks for it.
import { infiniteQueryOptions } from "@tanstack/react-query";
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
