// What the service finds for a text, and the text that it proposes when it finds nothing.
import { queryOptions } from "@tanstack/react-query";
import { api, body } from "../../api/client";

/** The conversations, messages, artifacts, files and research tasks that match a query; the previous ones while a longer query is searched. */
export const searchQuery = (query: string) =>
  queryOptions({
    queryKey: ["search", query],
    queryFn: async () => {
      const first = await body(api.GET("/search", { params: { query: { q: query, limit: 50 } } }));
      const found = first.data;
      const proposed = first.did_you_mean;
      if (!first.has_more || found.some((result) => result.kind === "file"))
        return { found, proposed, hasMore: first.has_more };
      // Files come last, so the page may have none although some match.
      const files = await body(api.GET("/search", { params: { query: { q: query, kind: "file", limit: 10 } } }));
      return { found: [...found, ...files.data], proposed, hasMore: true };
    },
    enabled: query !== "",
    placeholderData: (before) => (query === "" ? undefined : before),
  });

/** The messages of one conversation that match a query. */
export const conversationSearchQuery = (query: string, conversation_id: string) =>
  queryOptions({
    queryKey: ["search", query, conversation_id],
    queryFn: () =>
      body(api.GET("/search", { params: { query: { q: query, conversation_id, kind: "message", limit: 100 } } })),
  });
