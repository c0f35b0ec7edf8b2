// Notifications of the browser about answers that are complete. Rendered only while the user wants them.
import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import type { Conversation } from "../../api/client";
import { find, partsOf } from "../../api/conversation-pages";
import { memoized } from "../../api/memoized";
import { conversationsQuery } from "../../api/queries";
import { notify } from "../../controls/notification";
import { useMessages } from "../../messages/localization";
import { notifyingMessages } from "../../messages/notifying";

const answeringOf = memoized((page: readonly Conversation[]) => page.filter((one) => one.live_turn_id !== null));

export function AnswerNotifications() {
  const t = useMessages(notifyingMessages);
  const navigate = useNavigate();
  const { data: pages } = useInfiniteQuery({
    ...conversationsQuery,
    enabled: false,
    select: (list) => partsOf(list.pages),
  });
  /** The last turn of each conversation that was answering. */
  const answering = useRef<ReadonlyMap<string, string>>(new Map());
  useEffect(() => {
    if (pages === undefined) return;
    const before = answering.current;
    answering.current = new Map(
      pages.flatMap(answeringOf).map(({ conversation_id, live_turn_id }) => [conversation_id, live_turn_id!]),
    );
    for (const [id, turn] of before) {
      if (answering.current.has(id)) continue;
      const ended = find(pages, id); // deleted, if it is not in the list
      if (ended?.unread !== true) continue;
      const open = () => void navigate({ to: "/c/$conversation", params: { conversation: id } });
      void notify(turn, t("notify.answer"), ended.title, id, open);
    }
  }, [pages, navigate, t]);
  return null;
}
