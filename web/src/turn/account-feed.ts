// Keeps what the app displays current: refetches what the items of the account's feed report as changed.
import { outdatedBy, type KnownVersions } from "../api/feed-changes";
import { conversationQuery, queryClient, refetch, refetchDisplayed, settingsQuery, updateListed } from "../api/queries";
import { useSessionState } from "../api/session-state";
import type { FeedItem } from "./feed";
import { sharedTabs } from "./live";

/** Milliseconds for which changes are collected, so that several changes of one resource cause one request. */
const collected = 50;
/**
 * Milliseconds between two refetches of everything displayed while the feed is not connected: a proxy or a network may
 * pass short requests, but no streams.
 */
const fallbackInterval = 20_000;

const known: KnownVersions = {
  draft: (id) => queryClient.getQueryData(conversationQuery(id).queryKey)?.draft.version,
  settings: () => queryClient.getQueryData(settingsQuery.queryKey)?.version,
};

let open = false;
const outdated = new Map<string, readonly string[]>();
/** The changed conversations with their new versions; null: deleted. */
const changed = new Map<string, number | null>();
let timer: ReturnType<typeof setTimeout> | null = null;

/** Starts to follow the feed. Further calls have no effect. */
export function startAccountFeed(): void {
  if (started) return;
  started = true;
  sharedTabs().followFeed({
    items: (items: FeedItem[]) => {
      for (const { type, id, version } of items)
        if (type.startsWith("conversation.") && id !== undefined)
          changed.set(id, type === "conversation.deleted" ? null : (version ?? 0));
      for (const key of items.flatMap((item) => outdatedBy(item, known))) outdated.set(key.join(" "), key);
      if (outdated.size > 0) timer ??= setTimeout(() => void apply(), collected);
    },
    open: (now) => void (open = now),
  });
  setInterval(() => {
    if (!open && !document.hidden && navigator.onLine && !useSessionState.getState().lost) void refetchDisplayed();
  }, fallbackInterval);
}

let started = false;

/** Refetches what is outdated. Changes that arrive in the meantime are applied afterwards. */
async function apply(): Promise<void> {
  const keys = [...outdated.values()];
  const conversations = new Map(changed);
  outdated.clear();
  changed.clear();
  try {
    await (keys.some((key) => key.length === 0) ? refetchDisplayed({ all: true }) : Promise.all(keys.map(refetch)));
    await updateListed(conversations);
  } finally {
    timer = outdated.size > 0 ? setTimeout(() => void apply(), collected) : null;
  }
}
