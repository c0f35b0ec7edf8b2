import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { Conversation } from "./client";
import { find, partsOf } from "./conversation-pages";
import { useOutbox } from "./outbox";
import { withOutbox } from "./provisional";
import { conversationQuery, conversationsQuery } from "./queries";

/** Returns what is known of a conversation, even if it cannot be loaded; undefined: nothing. Requests nothing. */
export function useKnownConversation(id: string | null): Conversation | undefined {
  const { data: page } = useQuery({ ...conversationQuery(id ?? ""), enabled: false });
  const { data: listed } = useInfiniteQuery({
    ...conversationsQuery,
    enabled: false,
    select: ({ pages }) => (id === null ? undefined : find(partsOf(pages), id)),
  });
  const messages = useOutbox(({ list }) => list);
  const known = page ?? listed;
  return id === null ? undefined : find(withOutbox(known === undefined ? [[]] : [[known]], messages), id);
}
