// Keeps what the app displays current: refetches what the items of the account's feed report as changed. The feed is
// opened before the first pages of the app are loaded, so that it reports every change after that.
import { holdReads } from "../api/client";
import { outdatedBy, rowOutdatedBy, type KnownVersions } from "../api/feed-changes";
import {
  conversationQuery,
  lastFetch,
  queryClient,
  refetch,
  refetchAll,
  refetchDisplayed,
  sessionQuery,
  settingsQuery,
  updateListed,
} from "../api/queries";
import { useSessionState } from "../api/session-state";
import type { FeedItem } from "./feed";
import { sharedTabs } from "./live-store";
import { noteTask, refreshRunningTasks } from "./running-tasks";

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

/** The longest time in milliseconds for which the requests of the first pages wait for the feed. */
const longestWait = 500;

/** Starts to follow the feed. Without a session, the service refuses it until the user signs in. */
export function startAccountFeed(): void {
  let open = false;
  /** The last fetch of a query that may have been before a gap in the feed; null: there was no gap. */
  let gapAfter: number | null = null;
  const outdated = new Map<string, readonly string[]>();
  /** The changed conversations with their new versions; null: deleted. */
  const changed = new Map<string, number | null>();
  let timer: ReturnType<typeof setTimeout> | null = null;
  /** Whether requests that read wait: until the feed is connected, cannot be, or takes too long. */
  let held = true;
  let endHold!: () => void;
  holdReads(new Promise<void>((resolve) => (endHold = resolve)).then(() => void (held = false)));
  setTimeout(endHold, longestWait);

  /** Refetches what is outdated. Changes that arrive in the meantime are applied afterwards. */
  async function apply(): Promise<void> {
    const keys = [...outdated.values()];
    const conversations = new Map(changed);
    const gap = gapAfter;
    outdated.clear();
    changed.clear();
    gapAfter = null;
    try {
      if (gap !== null) await refetchAll(gap);
      await Promise.all(keys.map(refetch));
      await updateListed(conversations);
    } finally {
      timer = outdated.size > 0 || gapAfter !== null ? setTimeout(() => void apply(), collected) : null;
    }
  }

  sharedTabs().followFeed({
    items: (items: FeedItem[]) => {
      for (const item of items) {
        const row = rowOutdatedBy(item, known);
        if (row !== undefined) changed.set(row[0], row[1] === null ? null : Math.max(row[1], changed.get(row[0]) ?? 0));
        const { type, id, conversation_id, state } = item;
        if (type === "task.changed" && id !== undefined) noteTask(id, conversation_id ?? "", state ?? "");
      }
      for (const key of items.flatMap((item) => outdatedBy(item, known)))
        if (key.length > 0) outdated.set(key.join(" "), key);
        else if (!held) gapAfter = lastFetch(); // what is held is sent after the gap
      if (outdated.size > 0 || gapAfter !== null) timer ??= setTimeout(() => void apply(), collected);
    },
    open: (now) => {
      open = now;
      if (now) void refreshRunningTasks().catch(() => {}); // the next connection asks again
      endHold();
    },
  });
  setInterval(() => {
    const signedIn = queryClient.getQueryData(sessionQuery.queryKey) !== undefined;
    if (!open && signedIn && !document.hidden && navigator.onLine && !useSessionState.getState().lost)
      void refetchDisplayed();
  }, fallbackInterval);
}
