// The name of the page in the browser's tab: the room, and how many answers wait to be read elsewhere.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import mark from "../mark.svg";
import unreadMark from "../style/mark-unread.svg";
import { sidebarQuery } from "../sidebar/list";
import { useSpeech } from "../words/speech";

/** Finished answers that were not read yet, among the conversations that are loaded. */
function useUnread(): number {
  const { data } = useInfiniteQuery({ ...sidebarQuery, enabled: false, select: ({ pages }) => pages.flatMap((page) => page.data).filter((one) => one.unread && one.live_turn_id === null).length });
  return data ?? 0;
}

export function RoomTitle({ name }: { name?: string }) {
  const { say, intl } = useSpeech();
  const unread = useUnread();
  const whole = name === undefined ? say("app.name") : `${name} · ${say("app.name")}`;
  return <title>{unread > 0 ? `(${intl.formatNumber(unread)}) ${whole}` : whole}</title>;
}

/** Marks the icon of the tab while there is something to read. */
export function Badge() {
  const unread = useUnread() > 0;
  useEffect(() => {
    document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.setAttribute("href", unread ? unreadMark : mark);
  }, [unread]);
  return null;
}
