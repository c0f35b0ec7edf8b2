// What the app knows of the account's state on the server, in TanStack Query's cache: one key and one query for each
// thing, and the words by which tabs tell each other what changed.
import { infiniteQueryOptions, QueryClient, queryOptions } from "@tanstack/react-query";
import { api, askSession, body, type Conversation, type ConversationPage, type Message, Refusal } from "./client";
import { withNewest } from "./newest";

/** Times in milliseconds. A device that nobody tells of changes asks again so often while it is looked at. */
const listFreshness = 15_000;
const freshness = 10_000;

/** A dependency that is down or a network that is away: again, with pauses. What is refused stays refused. */
const patience = {
  retry: (failures: number, error: Error) => error instanceof Refusal && error.unanswered && failures < 4,
  retryDelay: (failures: number, error: Error) => Math.max(error instanceof Refusal ? error.retryAfter : 0, Math.min(8_000, 500 * 2 ** failures) * (0.5 + Math.random() / 2)),
  networkMode: "always",
} as const;

export const queryClient = new QueryClient({
  defaultOptions: { queries: { staleTime: freshness, ...patience }, mutations: { networkMode: "always" } },
});

export const sessionQuery = queryOptions({ queryKey: ["session"], queryFn: askSession, staleTime: 5 * 60_000, retry: (failures, error) => error instanceof Refusal && error.unanswered && failures < 8 });

export const settingsQuery = queryOptions({ queryKey: ["settings"], queryFn: () => body(api.GET("/account/settings")), staleTime: 60_000 });

export const devicesQuery = infiniteQueryOptions({
  queryKey: ["devices"],
  initialPageParam: null as string | null,
  queryFn: ({ pageParam }) => body(api.GET("/auth/sessions", { params: { query: { limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) } } })),
  getNextPageParam: (page) => page.next_cursor,
});

/** Titles that are on their way to the service: what it told of them before does not stand against them. */
export const titlesOnTheWay = new Map<string, string>();

const asWished = <T extends { conversation_id: string; title: string }>(one: T): T => ({ ...one, title: titlesOnTheWay.get(one.conversation_id) ?? one.title });

export const conversationsQuery = infiniteQueryOptions({
  queryKey: ["conversations"],
  initialPageParam: null as string | null,
  queryFn: async ({ pageParam }) => {
    const page = await body(api.GET("/conversations", { params: { query: { limit: 50, ...(pageParam === null ? {} : { cursor: pageParam }) } } }));
    return { ...page, data: page.data.map(asWished) };
  },
  getNextPageParam: (page) => page.next_cursor,
  refetchInterval: listFreshness,
  refetchOnWindowFocus: "always",
});

export const conversationQuery = (id: string) =>
  queryOptions<ConversationPage>({
    queryKey: ["conversation", id],
    queryFn: async () => asWished((await body(api.GET("/conversations/{conversation_id}", { params: { path: { conversation_id: id } } }))) as ConversationPage),
    refetchInterval: listFreshness,
    refetchOnWindowFocus: "always",
  });

/** The newest messages of a branch, or those behind a cursor. */
const newestMessages = (id: string, branch: string, cursor: string | null = null) =>
  body(
    api.GET("/conversations/{conversation_id}/messages", {
      params: { path: { conversation_id: id }, query: { branch_id: branch, direction: "older", limit: 100, ...(cursor === null ? {} : { cursor }) } },
    }),
  );

/** The messages of the active branch, the newest page first; older pages are asked for by scrolling up. */
export const messagesQuery = (id: string, branch: string) =>
  infiniteQueryOptions({
    queryKey: ["messages", id, branch],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => newestMessages(id, branch, pageParam),
    getNextPageParam: (page) => page.older_cursor,
    // Whoever learns that there are others says so: changed("messages", id).
    staleTime: Infinity,
  });

const changes = new BroadcastChannel("turnstone-changes");
changes.onmessage = ({ data }: MessageEvent<readonly string[]>) => void again(data);

/** Asks again for what changed, here and in the other tabs. */
export function changed(...key: readonly string[]): Promise<void> {
  changes.postMessage(key);
  return again(key);
}

/** Asks again for what changed, in this tab. */
export async function again(key: readonly string[]): Promise<void> {
  if (key[0] !== "messages") return queryClient.invalidateQueries({ queryKey: key });
  await Promise.all(queryClient.getQueryCache().findAll({ queryKey: key }).map(({ queryKey: [, id, branch] }) => newestAgain(String(id), String(branch))));
}

/** Asks again for the newest messages of a branch; for all that were read when that does not do. */
async function newestAgain(id: string, branch: string): Promise<void> {
  const { queryKey } = messagesQuery(id, branch);
  const many = (queryClient.getQueryData(queryKey)?.pages.length ?? 0) > 1;
  if (!many || queryClient.isFetching({ queryKey }) > 0) return queryClient.invalidateQueries({ queryKey });
  try {
    const newest = await newestMessages(id, branch);
    const known = queryClient.getQueryData(queryKey);
    const together = known === undefined ? null : withNewest(known, newest);
    if (together === null) return await queryClient.invalidateQueries({ queryKey });
    queryClient.setQueryData(queryKey, together);
  } catch {
    return queryClient.invalidateQueries({ queryKey }); // it tries again, and tells when it cannot
  }
}

/** Puts a draft that was just kept into the conversation here; the other tabs ask for it. */
export function noteDraft(id: string, draft: ConversationPage["draft"]): void {
  queryClient.setQueryData<ConversationPage>(["conversation", id], (page) => (page === undefined || page.draft.version >= draft.version ? page : { ...page, draft }));
  changes.postMessage(["conversation", id]);
}

/** Puts what the service answered with in place of what the cache has of a conversation. */
export function keep(conversation: Conversation): void {
  queryClient.setQueryData<ConversationPage>(["conversation", conversation.conversation_id], (page) => (page === undefined ? page : { ...page, ...conversation }));
  queryClient.setQueryData(conversationsQuery.queryKey, (list) =>
    list === undefined
      ? list
      : { ...list, pages: list.pages.map((page) => ({ ...page, data: page.data.map((item) => (item.conversation_id === conversation.conversation_id ? conversation : item)) })) },
  );
}

export type { Message };

/** Tells the service how far a conversation was read; it may be told twice. */
export async function markRead(id: string, message: string): Promise<void> {
  const path = { conversation_id: id };
  const mutationFn = () => body(api.PUT("/conversations/{conversation_id}/read", { params: { path }, body: { message_id: message } }));
  keep(await queryClient.getMutationCache().build(queryClient, { mutationFn, ...patience }).execute(undefined));
  void changed("conversations");
}
