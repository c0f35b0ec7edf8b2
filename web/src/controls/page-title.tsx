// The title and icon of the browser tab: the name of the page and the number of unread answers.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import mark from "../style/mark.svg";
import unreadMark from "../style/mark-unread.svg";
import type { Conversation } from "../api/client";
import { memoized } from "../api/memoized";
import { conversationsQuery } from "../api/queries";
import { useLocalization } from "../messages/localization";

/** Returns the number of conversations of a page with an unread finished answer. */
const unreadOf = memoized(
  (page: readonly Conversation[]) => page.filter((one) => one.unread && one.live_turn_id === null).length,
);

/** Returns the number of loaded conversations with an unread finished answer. */
function useUnread(): number {
  const { data } = useInfiniteQuery({
    ...conversationsQuery,
    enabled: false,
    select: ({ pages }) => pages.reduce((sum, { data: page }) => sum + unreadOf(page), 0),
  });
  return data ?? 0;
}

export function PageTitle({ name }: { name?: string }) {
  const { t, intl } = useLocalization();
  const unread = useUnread();
  const whole = name === undefined ? t("app.name") : `${name} · ${t("app.name")}`;
  return <title>{unread > 0 ? `(${intl.formatNumber(unread)}) ${whole}` : whole}</title>;
}

/** Marks the icon of the tab while there are unread answers. */
export function UnreadIcon() {
  const unread = useUnread() > 0;
  useEffect(() => {
    document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.setAttribute("href", unread ? unreadMark : mark);
  }, [unread]);
  return null;
}
