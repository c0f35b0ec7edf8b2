// The conversations that this browser knows: those of the service, and those whose first message it is still sending.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Conversation } from "../api/client";
import { useOutbox } from "../api/outbox";
import { conversationQuery, conversationsQuery } from "../api/queries";
import { listedConversations } from "./groups";
import { withOutbox, withoutTemporary } from "./provisional";
import { useSelecting } from "./selecting";

/** Returns the loaded conversations, each once, in the order of the list. */
export function useConversations(pages: readonly { data: readonly Conversation[] }[] | undefined) {
  const messages = useOutbox(({ list }) => list);
  const leaving = useSelecting((selecting) => selecting.leaving);
  const conversations = useMemo(
    () => listedConversations(pages ?? []).filter((one) => leaving.get(one.conversation_id) !== "sidebar"),
    [pages, leaving],
  );
  return useMemo(() => withoutTemporary(withOutbox(conversations, messages)), [conversations, messages]);
}

/** Returns what is known of a conversation, even if it cannot be loaded; undefined: nothing. Requests nothing. */
export function useKnownConversation(id: string | null): Conversation | undefined {
  const { data: page } = useQuery({ ...conversationQuery(id ?? ""), enabled: false });
  const { data: listed } = useInfiniteQuery({
    ...conversationsQuery,
    enabled: false,
    select: ({ pages }) => pages.flatMap(({ data }) => data).find((one) => one.conversation_id === id),
  });
  const messages = useOutbox(({ list }) => list);
  const known = page ?? listed;
  return withOutbox(known === undefined ? [] : [known], messages).find((one) => one.conversation_id === id);
}
