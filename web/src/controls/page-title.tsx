// The title and icon of the browser tab: the name of the page, and the number of conversations with an unread answer or with a
// call that waits for the user's approval.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import { useEffect } from "react";
import mark from "../style/mark.svg";
import unreadMark from "../style/mark-unread.svg";
import type { Conversation } from "../api/client";
import { memoized } from "../api/memoized";
import { conversationsQuery } from "../api/queries";
import { useApprovals } from "../turn/use-approvals";
import { useLocalization } from "../messages/localization";

/** Returns the number of conversations of a page with an unread finished answer. */
const unreadOf = memoized(
  (page: readonly Conversation[]) => page.filter((one) => one.unread && one.live_turn_id === null).length,
);

/** Returns the number of loaded conversations with an unread finished answer, and of others that wait for an approval. */
function useUnread(): number {
  const current = useParams({ strict: false }).conversation;
  const asking = useApprovals()?.data.map(({ conversation_id }) => conversation_id) ?? [];
  const elsewhere = new Set(asking.filter((id) => id !== current)).size;
  const { data } = useInfiniteQuery({
    ...conversationsQuery,
    enabled: false,
    select: ({ pages }) => pages.reduce((sum, { data: page }) => sum + unreadOf(page), 0),
  });
  return (data ?? 0) + elsewhere;
}

export function PageTitle({ name }: { name?: string }) {
  const localization = useLocalization();
  const unread = useUnread();
  const app = localization.t("app.name");
  const whole = name === undefined ? app : `${name} · ${app}`;
  return <title>{unread > 0 ? `(${localization.intl.formatNumber(unread)}) ${whole}` : whole}</title>;
}

/** Marks the icon of the tab, and that of the installed app, while the title has a number. */
export function UnreadIcon() {
  const unread = useUnread();
  useEffect(() => {
    document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.setAttribute("href", unread > 0 ? unreadMark : mark);
    // Only an installed app has a badge; 0 removes it.
    if ("setAppBadge" in navigator) navigator.setAppBadge(unread).catch(() => {});
  }, [unread]);
  return null;
}
