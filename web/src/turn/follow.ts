// Follows the events of one turn over the network until it ends. After any failure it resumes after the last sequence.
import { createParser } from "eventsource-parser";
import type { TurnEvent } from "../generated/events";
import { readRefusal, retryAfter } from "../api/problem";

/** The state of the connection to a turn. */
export type ConnectionState =
  | "connecting"
  | "open"
  /** The connection broke and is retried. The turn continues without it. */
  | "waiting"
  /** The connection broke, and at least two attempts in succession had no usable response. */
  | "unreachable"
  /** The session has ended; the turn is followed again after a sign-in. */
  | "signed_out"
  /** The account has no such turn. */
  | "gone"
  /** The cursor does not match the log: the conversation must be loaded again. */
  | "stale"
  /** All events were read. */
  | "ended";

export interface Follower {
  events(events: TurnEvent[]): void;
  link(link: ConnectionState): void;
}

/** The dependencies of follow; tests replace them. */
export interface FollowDependencies {
  fetch: typeof fetch;
  /** Waits; ends early when the network is back or the visibility of the page changes. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

/** Milliseconds without data after which a connection counts as lost: two missed heartbeats. */
const idleTimeout = 20_000;
const firstPause = 250;
const longestPause = 8_000;

/** Follows a turn until it has ended or cannot be followed (401, 404, 409), or until signal aborts. Never throws. */
export async function follow(
  turn: string,
  after: number,
  follower: Follower,
  signal: AbortSignal,
  deps: FollowDependencies,
): Promise<void> {
  let last = after;
  let failures = 0;
  /** The attempts in succession without a response or with a 5xx. */
  let unanswered = 0;
  const lost = () => (unanswered >= 2 ? "unreachable" : "waiting");
  while (!signal.aborted) {
    follower.link(failures === 0 ? "connecting" : lost());
    let wait = Math.min(longestPause, firstPause * 2 ** failures) * (0.5 + Math.random() / 2);
    try {
      unanswered += 1;
      const response = await openStream(`/chat/turns/${turn}/events?after=${last}`, signal, deps);
      if (response.status < 500) unanswered = 0;
      if (response.status === 200 && response.body !== null) {
        follower.link("open");
        const ended = await read(response.body, signal, (events) => {
          failures = 0;
          last = Math.max(last, events.at(-1)?.sequence ?? last);
          follower.events(events);
        });
        if (ended) return follower.link("ended");
        if (failures === 0) {
          failures = 1;
          continue; // a draining server ends its streams: reconnect without a pause
        }
      }
      if (response.status === 204) return follower.link("ended");
      if (response.status === 401) return follower.link("signed_out");
      if (response.status === 404) return follower.link("gone");
      if (response.status === 409) return follower.link("stale");
      wait = Math.max(wait, retryAfter(response));
      await readRefusal(response);
    } catch {
      if (signal.aborted) return;
    }
    failures += 1;
    follower.link(lost());
    await deps.pause(wait, signal);
  }
}

/** Requests a stream. Aborts the request if there is no response in time. */
async function openStream(path: string, signal: AbortSignal, deps: FollowDependencies): Promise<Response> {
  const timeout = new AbortController();
  const watchdog = setTimeout(() => timeout.abort(), idleTimeout);
  try {
    return await deps.fetch(path, {
      headers: { Accept: "text/event-stream" },
      signal: AbortSignal.any([signal, timeout.signal]),
      cache: "no-store",
    });
  } finally {
    clearTimeout(watchdog);
  }
}

/** Reads frames until the turn ends (returns true), the body ends, or no data arrives in time. */
async function read(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  sink: (events: TurnEvent[]) => void,
): Promise<boolean> {
  let batch: TurnEvent[] = [];
  let ended = false;
  const parser = createParser({
    onEvent({ data }) {
      const event = JSON.parse(data) as TurnEvent;
      ended ||= event.type === "turn.finished";
      batch.push(event);
    },
  });
  const reader = body.getReader();
  const text = new TextDecoder();
  let watchdog: ReturnType<typeof setTimeout> | undefined;
  const stop = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", stop);
  try {
    for (;;) {
      clearTimeout(watchdog);
      watchdog = setTimeout(stop, idleTimeout);
      const { done, value } = await reader.read();
      if (done) return ended;
      parser.feed(text.decode(value, { stream: true }));
      if (batch.length > 0) {
        sink(batch);
        batch = [];
      }
      if (ended) return true;
    }
  } finally {
    clearTimeout(watchdog);
    signal.removeEventListener("abort", stop);
    stop();
  }
}
