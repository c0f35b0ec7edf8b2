// The server state of the account in TanStack Query's cache: one key and one query per resource, and the messages by
// which tabs notify each other of changes.
import {
  focusManager,
  infiniteQueryOptions,
  QueryClient,
  queryOptions,
  type InfiniteData,
  type Query,
} from "@tanstack/react-query";
import {
  api,
  fetchSession,
  body,
  type Conversation,
  type ConversationPage,
  type FollowUp,
  type Message,
  Refusal,
} from "./client";
import { find, partsOf, replaceConversation } from "./conversation-pages";
import { mergeNewestConversations } from "./merge-newest-conversations";
import { mergeNewestPage } from "./merge-newest-page";
import { pagedQuery } from "./paged-query";
import { withPendingChanges, type Change } from "./pending-changes";
import { isUnsent } from "./provisional";

/** How long cached data counts as fresh, in milliseconds. */
const defaultStaleTime = 10_000;
/**
 * The most pages of a list that are fetched again when its newest page is not enough. The others are dropped, and read
 * again when the user scrolls to them: a reader may have loaded a thousand pages.
 */
const maxRefetchedPages = 4;
/** The most conversations of older pages that are fetched one by one after they have changed. */
const maxUpdates = 20;

/** Retries requests without a response or with a 5xx, with growing pauses. No other refused request is retried. */
const retryPolicy = {
  retry: (failures: number, error: Error) => error instanceof Refusal && error.outcomeUnknown && failures < 4,
  retryDelay: (failures: number, error: Error) =>
    Math.max(
      error instanceof Refusal ? error.retryAfter : 0,
      Math.min(8_000, 500 * 2 ** failures) * (0.5 + Math.random() / 2),
    ),
  networkMode: "always",
} as const;

export const queryClient = new QueryClient({
  defaultOptions: { queries: { staleTime: defaultStaleTime, ...retryPolicy }, mutations: { networkMode: "always" } },
});

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: fetchSession,
  staleTime: 5 * 60_000,
  retry: (failures, error) => error instanceof Refusal && error.outcomeUnknown && failures < 8,
});

export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: () => body(api.GET("/account/settings")),
  staleTime: 60_000,
});

/** What the profiles can do, and with which models. */
export const profilesQuery = queryOptions({
  queryKey: ["profiles"],
  queryFn: () => body(api.GET("/profiles")),
  staleTime: Infinity,
});

/** The tool calls of all conversations that wait for the user's approval, newest first. */
export const approvalsQuery = queryOptions({
  queryKey: ["approvals"],
  queryFn: () => body(api.GET("/approvals", { params: { query: { limit: 50 } } })),
  staleTime: Infinity, // the account feed reports changes
});

/** Fetches the newest conversations, or the page after a cursor. */
async function newestConversations(cursor: string | null = null) {
  const page = await body(
    api.GET("/conversations", { params: { query: { limit: 50, ...(cursor === null ? {} : { cursor }) } } }),
  );
  return { ...page, data: page.data.map(withPendingChanges) };
}

/** The archived conversations of the account. */
export const archiveQuery = pagedQuery(
  ["archive"],
  50,
  (page) => api.GET("/conversations", { params: { query: { archived: "true", ...page } } }),
  { refetchOnMount: "always" },
);

/**
 * The conversations of the account, newest page first. TanStack Query would refetch every page that was read, so code that
 * detects a change calls refetch, which fetches the newest page.
 */
export const conversationsQuery = infiniteQueryOptions({
  queryKey: ["conversations"],
  initialPageParam: null as string | null,
  queryFn: ({ pageParam }) => newestConversations(pageParam),
  getNextPageParam: (page) => page.next_cursor,
  staleTime: Infinity,
});

export const conversationQuery = (id: string) =>
  queryOptions<ConversationPage>({
    queryKey: ["conversation", id],
    queryFn: async () =>
      withPendingChanges(
        (await body(
          api.GET("/conversations/{conversation_id}", { params: { path: { conversation_id: id } } }),
        )) as ConversationPage,
      ),
    refetchOnWindowFocus: "always",
  });

type MessagePage = Awaited<ReturnType<typeof newestMessages>>;

/** Fetches the newest messages of a branch, or the page after a cursor. */
const newestMessages = (id: string, branch: string, cursor: string | null = null) =>
  body(
    api.GET("/conversations/{conversation_id}/messages", {
      params: {
        path: { conversation_id: id },
        query: { branch_id: branch, direction: "older", limit: 100, ...(cursor === null ? {} : { cursor }) },
      },
    }),
  );

/** The messages of a branch, newest page first; scrolling up fetches older pages. */
export const messagesQuery = (id: string, branch: string) =>
  infiniteQueryOptions({
    queryKey: ["messages", id, branch],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => newestMessages(id, branch, pageParam),
    getNextPageParam: (page) => page.older_cursor,
    // Code that detects new messages calls refetchInAllTabs("messages", id).
    staleTime: Infinity,
  });

let changeChannel: BroadcastChannel | null = null;

/** Numbers the fetches of queries in the order in which they started. */
let fetches = 0;
const lastFetchOf = new WeakMap<Query, number>();

/** Returns the number of the last fetch of a query. */
export const lastFetch = (): number => fetches;

/**
 * Starts to refetch what other tabs have changed, the list of conversations once the page is visible again, and
 * everything displayed once the device is online again.
 */
export function startQueries(): void {
  changeChannel = new BroadcastChannel("turnstone-changes");
  changeChannel.onmessage = ({ data }: MessageEvent<readonly string[]>) => void refetch(data);
  queryClient.getQueryCache().subscribe((event) => {
    if (event.type !== "updated" || event.action.type !== "fetch") return;
    // The next page of a list says nothing about the others.
    if (event.action.meta?.fetchMore === undefined) lastFetchOf.set(event.query, ++fetches);
  });
  focusManager.subscribe((focused) => void (focused && refetch(conversationsQuery.queryKey)));
  // Cancelled first: a query that waits for its next retry would continue to wait.
  window.addEventListener("online", () => {
    void queryClient
      .cancelQueries({ type: "active" })
      .then(() => refetchQueries(queryClient.getQueryCache().findAll({ type: "active" }), refetch));
  });
}

/** Refetches the queries under a key, in this tab and in the others. */
export function refetchInAllTabs(...key: readonly string[]): Promise<void> {
  changeChannel?.postMessage(key);
  return refetch(key);
}

/** Refetches the queries under a key in this tab. Of a list that may have many pages, it fetches the newest page. */
export async function refetch(key: readonly string[]): Promise<void> {
  if (key[0] === "conversations")
    return refetchNewestPage(conversationsQuery.queryKey, newestConversations, mergeNewestConversations);
  if (key[0] !== "messages") return invalidate(key);
  await Promise.all(
    queryClient
      .getQueryCache()
      .findAll({ queryKey: key })
      .map(({ queryKey: [, id, branch] }) =>
        refetchNewestPage(
          messagesQuery(String(id), String(branch)).queryKey,
          () => newestMessages(String(id), String(branch)),
          mergeNewestPage,
        ),
      ),
  );
}

const listedConversations = () => partsOf(queryClient.getQueryData(conversationsQuery.queryKey)?.pages ?? []);

/**
 * Updates changed conversations (version null: deleted) in the list, unless it has their versions. If there are many, it fetches the
 * list again.
 */
export async function updateListed(changed: ReadonlyMap<string, number | null>): Promise<void> {
  const listed = listedConversations();
  const outdated = [...changed].flatMap(([id, version]) => {
    const known = find(listed, id);
    return known === undefined || (version !== null && known.version >= version) ? [] : [id];
  });
  if (outdated.length > maxUpdates) return refetchPages(conversationsQuery.queryKey);
  for (const id of outdated) await updateOne(id);
}

async function updateOne(id: string): Promise<void> {
  try {
    const path = { conversation_id: id };
    cacheWithPending((await body(api.GET("/conversations/{conversation_id}", { params: { path } }))) as Conversation);
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) return; // the next refetch of the list contains the change
    queryClient.setQueryData(conversationsQuery.queryKey, (list) => list && replaceConversation(list, id, () => null));
  }
}

/** Refetches everything displayed, except for the session and for what does not exist. */
export const refetchDisplayed = (): Promise<void> => refetchQueries(displayed(), refetch);

/**
 * Refetches what is displayed and was fetched up to the given fetch (lastFetch), because anything may have changed since,
 * also on older pages of lists.
 */
export const refetchAll = (upTo: number): Promise<void> =>
  refetchQueries(
    displayed().filter((query) => (lastFetchOf.get(query) ?? 0) <= upTo),
    refetchPages,
  );

const displayed = (): Query[] =>
  queryClient
    .getQueryCache()
    .findAll({ type: "active" })
    .filter(({ queryKey, state: { error } }) => {
      const missing = error instanceof Refusal && error.status === 404;
      return queryKey[0] !== "session" && !missing;
    });

/** Refetches everything displayed, and everything else when it is displayed again. */
export async function invalidateAll(): Promise<void> {
  const queries = queryClient.getQueryCache().getAll();
  await refetchQueries(queries, refetchPages);
}

/** Refetches queries; those of lists that may have many pages by the given function. */
async function refetchQueries(
  queries: readonly Query[],
  refetchList: (key: readonly string[]) => Promise<void>,
): Promise<void> {
  await Promise.all(
    queries.map(({ queryKey }) =>
      queryKey[0] === "conversations" || queryKey[0] === "messages"
        ? refetchList(queryKey as readonly string[])
        : invalidate(queryKey as readonly string[], true),
    ),
  );
}

/** Waits until no query under a key is being fetched. */
async function fetched(queryKey: readonly string[]): Promise<void> {
  const inProgress = () =>
    queryClient
      .getQueryCache()
      .findAll({ queryKey, fetchStatus: "fetching" })
      .flatMap(({ promise }) => promise ?? []);
  for (let promises = inProgress(); promises.length > 0; promises = inProgress()) await Promise.allSettled(promises);
}

/** Fetches the newest page of a list and merges it. If that is not enough, fetches the first pages again. */
async function refetchNewestPage<Page>(
  queryKey: readonly string[],
  fetchNewest: () => Promise<Page>,
  merge: (known: InfiniteData<Page>, newest: Page) => InfiniteData<Page> | null,
): Promise<void> {
  const pages = () => queryClient.getQueryData<InfiniteData<Page>>(queryKey);
  if ((pages()?.pages.length ?? 0) < 2) return invalidate(queryKey);
  try {
    const newest = await queryClient.fetchQuery({
      queryKey: ["newest", ...queryKey, crypto.randomUUID()],
      queryFn: () => fetchNewest(),
      gcTime: 0,
      ...retryPolicy,
    });
    // The pages that a fetch in progress returns would replace the merged ones.
    await fetched(queryKey);
    const known = pages();
    const merged = known === undefined ? null : merge(known, newest);
    if (merged === null) return await refetchPages(queryKey);
    queryClient.setQueryData(queryKey, merged);
  } catch {
    return refetchPages(queryKey); // the query reports the error if that fails, too
  }
}

/** Fetches the first pages of a list again and drops the others. */
async function refetchPages(queryKey: readonly string[]): Promise<void> {
  await queryClient.cancelQueries({ queryKey, exact: true });
  queryClient.setQueryData<InfiniteData<unknown>>(queryKey, (list) =>
    list === undefined || list.pages.length <= maxRefetchedPages
      ? list
      : { pages: list.pages.slice(0, maxRefetchedPages), pageParams: list.pageParams.slice(0, maxRefetchedPages) },
  );
  await queryClient.invalidateQueries({ queryKey, exact: true });
}

/** Refetches the queries under a key. A first load in progress may be older than the change, so it is repeated. */
async function invalidate(queryKey: readonly string[], exact = false): Promise<void> {
  await queryClient.cancelQueries({ queryKey, exact, predicate: ({ state }) => state.data === undefined });
  await queryClient.invalidateQueries({ queryKey, exact });
}

/** Whether a draft has a text or files; the same as has_draft of its conversation. */
export const hasContent = ({ content, attachments }: ConversationPage["draft"]): boolean =>
  content !== "" || attachments.length > 0;

/** Writes a stored draft into the cached conversation of this tab; the other tabs refetch it. */
export function cacheDraft(id: string, draft: ConversationPage["draft"]): void {
  queryClient.setQueryData<ConversationPage>(["conversation", id], (page) =>
    page === undefined || page.draft.version >= draft.version ? page : { ...page, draft },
  );
  // The list says which conversations have a draft, and has one whose first message is not sent only because of it.
  const page = queryClient.getQueryData<ConversationPage>(["conversation", id]);
  const listed = find(listedConversations(), id);
  if (listed === undefined ? page === undefined || isUnsent(page) : listed.has_draft !== hasContent(draft))
    void refetch(conversationsQuery.queryKey);
  changeChannel?.postMessage(["conversation", id]);
}

/**
 * Replaces the cached state of a conversation with the state that the service returned. Responses can arrive in another
 * order than the service sent them: one that is older than the cached state is ignored.
 */
function cacheConversation(conversation: Conversation): void {
  const outdated = (cached: { version: number }) => cached.version > conversation.version;
  queryClient.setQueryData<ConversationPage>(["conversation", conversation.conversation_id], (page) =>
    page === undefined || outdated(page) ? page : { ...page, ...conversation },
  );
  queryClient.setQueryData(
    conversationsQuery.queryKey,
    (list) =>
      list && replaceConversation(list, conversation.conversation_id, (item) => (outdated(item) ? item : conversation)),
  );
}

/**
 * Caches a conversation that may be without the changes that are being stored, for example as a response had it. Returns it with them.
 */
export function cacheWithPending(conversation: Conversation): Conversation {
  const displayed = withPendingChanges(conversation);
  cacheConversation(displayed);
  return displayed;
}

/** Sets fields of a cached conversation, whatever its version is. */
export function cacheChange(id: string, change: Change): void {
  queryClient.setQueryData<ConversationPage>(["conversation", id], (page) => page && { ...page, ...change });
  queryClient.setQueryData(
    conversationsQuery.queryKey,
    (list) => list && replaceConversation(list, id, (item) => ({ ...item, ...change })),
  );
}

/** Sets the order of the follow-ups in the cached conversation, unless it has a later version of the queue. */
export function cacheOrder(id: string, order: readonly string[], version: number): void {
  queryClient.setQueryData<ConversationPage>(["conversation", id], (page) =>
    page === undefined || page.queue_version > version
      ? page
      : { ...page, queue_version: version, follow_ups: inOrder(page.follow_ups, order) },
  );
}

/** Sets a follow-up in the cached conversation, unless it has a later version of it. The next change is based on its version. */
export function cacheFollowUp(id: string, changed: FollowUp): void {
  const newer = (one: FollowUp) =>
    one.follow_up_id === changed.follow_up_id && one.version < changed.version ? changed : one;
  queryClient.setQueryData<ConversationPage>(["conversation", id], (page) =>
    page === undefined ? page : { ...page, follow_ups: page.follow_ups.map(newer) },
  );
}

/** Returns follow-ups in an order of their identifiers. Those that it does not name follow. */
export function inOrder(followUps: readonly FollowUp[], order: readonly string[]): FollowUp[] {
  const places = new Map(order.map((id, at) => [id, at]));
  const place = ({ follow_up_id }: FollowUp) => places.get(follow_up_id) ?? order.length;
  return followUps.toSorted((a, b) => place(a) - place(b));
}

/** Sets the feedback on a message in the cached pages of its conversation. */
export function cacheFeedback(id: string, message: string, feedback: Message["feedback"]): void {
  queryClient.setQueriesData<InfiniteData<MessagePage>>({ queryKey: ["messages", id] }, (list) =>
    list === undefined
      ? list
      : {
          ...list,
          pages: list.pages.map((page) => ({
            ...page,
            data: page.data.map((one) => (one.message_id === message ? { ...one, feedback } : one)),
          })),
        },
  );
}

export type { Message };

/** Stores how far a conversation was read. The request is idempotent and is retried. */
export async function markRead(id: string, message: string): Promise<void> {
  const path = { conversation_id: id };
  const mutationFn = () =>
    body(api.PUT("/conversations/{conversation_id}/read", { params: { path }, body: { message_id: message } }));
  cacheWithPending(
    await queryClient
      .getMutationCache()
      .build(queryClient, { mutationFn, ...retryPolicy })
      .execute(undefined),
  );
  void refetchInAllTabs("conversations");
}
