// Follows the events of one turn over the network until its end: resumes behind the last sequence seen, whatever breaks.
import { createParser } from "eventsource-parser";
import type { TurnEvent } from "../generated/events";
import { problemOf, retryAfter } from "../api/problem";

/** How a reader is connected to a turn. */
export type Link =
  | "connecting"
  | "open"
  /** The connection broke; it is tried again. The turn goes on without it. */
  | "waiting"
  /** The session is over; followed again after a sign-in. */
  | "signed_out"
  /** There is no such turn for this account. */
  | "gone"
  /** What this reader holds does not fit the log: load the conversation again. */
  | "stale"
  /** Everything was read. */
  | "ended";

export interface Follower {
  events(events: TurnEvent[]): void;
  link(link: Link): void;
}

/** What following needs of its surroundings; tests give their own. */
export interface Surroundings {
  fetch: typeof fetch;
  /** Waits; ends early when the network comes back or the page is looked at again. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

/** Silence after which a connection counts as lost, in milliseconds: two missed heartbeats. */
const silence = 20_000;
const firstPause = 250;
const longestPause = 8_000;

/** Follows until the turn has ended, is gone, or signal aborts. Never throws. */
export async function follow(turn: string, after: number, to: Follower, signal: AbortSignal, around: Surroundings): Promise<void> {
  let last = after;
  let failures = 0;
  while (!signal.aborted) {
    to.link(failures === 0 ? "connecting" : "waiting");
    let wait = Math.min(longestPause, firstPause * 2 ** failures) * (0.5 + Math.random() / 2);
    try {
      const answer = await ask(`/chat/turns/${turn}/events?after=${last}`, signal, around);
      if (answer.status === 200 && answer.body !== null) {
        to.link("open");
        const ended = await read(answer.body, signal, (events) => {
          failures = 0;
          last = Math.max(last, events.at(-1)?.sequence ?? last);
          to.events(events);
        });
        if (ended) return to.link("ended");
        if (failures === 0) {
          failures = 1;
          continue; // a server that drains ends its streams: the next one goes on at once
        }
      }
      if (answer.status === 204) return to.link("ended");
      if (answer.status === 401) return to.link("signed_out");
      if (answer.status === 404) return to.link("gone");
      if (answer.status === 409) return to.link("stale");
      wait = Math.max(wait, retryAfter(answer));
      await problemOf(answer);
    } catch {
      if (signal.aborted) return;
    }
    failures += 1;
    to.link("waiting");
    await around.pause(wait, signal);
  }
}

/** Asks for a stream; one that is not answered for too long is given up. */
async function ask(path: string, signal: AbortSignal, around: Surroundings): Promise<Response> {
  const unanswered = new AbortController();
  const watchdog = setTimeout(() => unanswered.abort(), silence);
  try {
    return await around.fetch(path, { headers: { Accept: "text/event-stream" }, signal: AbortSignal.any([signal, unanswered.signal]), cache: "no-store" });
  } finally {
    clearTimeout(watchdog);
  }
}

/** Reads frames until the body ends, the turn ends (true), or nothing was heard for too long. */
async function read(body: ReadableStream<Uint8Array>, signal: AbortSignal, sink: (events: TurnEvent[]) => void): Promise<boolean> {
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
      watchdog = setTimeout(stop, silence);
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
