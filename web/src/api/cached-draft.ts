import { notifyManager } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { conversationQuery, hasContent, queryClient } from "./queries";

const subscribe = (onChange: () => void) => queryClient.getQueryCache().subscribe(notifyManager.batchCalls(onChange));

/**
 * Returns whether the cached page of a conversation has a draft; undefined: there is no page. Unlike useQuery, it adds no
 * query to the cache, in which every invalidation looks at every query: the list has a row for each conversation.
 */
export function useCachedDraft(id: string): boolean | undefined {
  const read = () => {
    const page = queryClient.getQueryData(conversationQuery(id).queryKey);
    return page && hasContent(page.draft);
  };
  return useSyncExternalStore(subscribe, read, read);
}
