// Follows the account's feed over the network: the changes that all devices and jobs make. After any failure it resumes
// after the last item.
import type { Schemas } from "../api/client";
import { readRefusal, retryAfter } from "../api/problem";
import { openStream, pauseAfter, readStream, type StreamDependencies } from "./event-stream";

export type FeedItem = Schemas["FeedItem"];

export interface FeedFollower {
  /** cursor is the position after the last item. */
  items(items: FeedItem[], cursor: string): void;
  /** Reports whether the feed is connected. A feed without a cursor is connected once its first item was received. */
  open(open: boolean): void;
}

/**
 * Follows the feed after a cursor until the session has ended or signal aborts. null starts with what happens from now
 * on; the first item is then feed.started. Never throws.
 */
export async function followFeed(
  after: string | null,
  follower: FeedFollower,
  signal: AbortSignal,
  deps: StreamDependencies,
): Promise<void> {
  let cursor = after;
  let failures = 0;
  while (!signal.aborted) {
    let wait = pauseAfter(failures);
    try {
      const response = await openStream(cursor === null ? "/events" : `/events?after=${cursor}`, signal, deps);
      if (response.status === 200 && response.body !== null) {
        if (cursor !== null) follower.open(true);
        await readStream(response.body, signal, (frames) => {
          const isFirst = cursor === null;
          failures = 0;
          cursor = frames.findLast(({ id }) => id !== undefined)?.id ?? cursor;
          if (cursor !== null)
            follower.items(
              frames.map(({ data }) => JSON.parse(data) as FeedItem),
              cursor,
            );
          if (isFirst) follower.open(true);
          return false;
        });
      } else {
        if (response.status === 401) return follower.open(false);
        if (response.status === 422) cursor = null; // of another account, or of a key that was replaced
        wait = Math.max(wait, retryAfter(response));
        await readRefusal(response);
      }
    } catch {
      if (signal.aborted) return;
    }
    follower.open(false);
    failures += 1;
    await deps.pause(wait, signal);
  }
}
